package wire

import (
	"bufio"
	"errors"
	"io"
	"slices"
)

// Array reads the objects of one JSON array, or of several values in a row,
// each as soon as its last byte is there.
type Array struct {
	r   *bufio.Reader
	buf []byte
	max int
}

var _ Events = (*Array)(nil)

// NewArray reads objects of at most max bytes from r.
func NewArray(r io.Reader, max int) *Array {
	return &Array{r: bufio.NewReaderSize(r, readBuffer), max: max}
}

// Next returns the next object. What stands between objects is skipped. The error
// is io.EOF at the end and io.ErrUnexpectedEOF within an object.
func (a *Array) Next() (Event, error) {
	a.buf = a.buf[:0]
	var o object
	for {
		c, err := a.r.ReadByte()
		if err != nil {
			if o.depth > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return Event{}, err
		}
		if o.depth == 0 && c != '{' {
			continue
		}
		a.buf = append(a.buf, c)
		if len(a.buf) > a.max {
			return Event{}, ErrTooLong
		}
		if o.ends(c) {
			return Event{Data: a.buf}, nil
		}
	}
}

// Buffered reports whether a further object has been read whole.
func (a *Array) Buffered() bool {
	var o object
	rest, _ := a.r.Peek(a.r.Buffered())
	return slices.ContainsFunc(rest, o.ends)
}

// object is a place within an object or before it.
type object struct {
	depth             int
	inString, escaped bool
}

// ends reports whether the object ends with this byte.
func (o *object) ends(c byte) bool {
	switch {
	case o.escaped:
		o.escaped = false
	case o.inString && c == '\\':
		o.escaped = true
	case c == '"':
		o.inString = o.depth > 0 && !o.inString
	case o.inString:
	case c == '{':
		o.depth++
	case c == '}' && o.depth > 0:
		o.depth--
		return o.depth == 0
	}
	return false
}
