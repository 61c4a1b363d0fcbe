package wire

import (
	"bufio"
	"errors"
	"io"
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
// is io.EOF at the end and
// io.ErrUnexpectedEOF within an object.
func (a *Array) Next() (Event, error) {
	a.buf = a.buf[:0]
	depth, inString, escaped := 0, false, false
	for {
		c, err := a.r.ReadByte()
		if err != nil {
			if depth > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return Event{}, err
		}
		if depth == 0 && c != '{' {
			continue
		}
		a.buf = append(a.buf, c)
		if len(a.buf) > a.max {
			return Event{}, ErrTooLong
		}
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return Event{Data: a.buf}, nil
			}
		}
	}
}

// Buffered is false: those who send arrays are few, and seldom fast.
func (a *Array) Buffered() bool { return false }
