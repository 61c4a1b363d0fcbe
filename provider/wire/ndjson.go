package wire

import (
	"bytes"
	"io"
)

// NDJSON reads one JSON value a line.
type NDJSON struct{ lines *lines }

var _ Events = (*NDJSON)(nil)

// NewNDJSON reads lines of at most max bytes from r.
func NewNDJSON(r io.Reader, max int) *NDJSON { return &NDJSON{newLines(r, max)} }

// Next returns the next line that is not blank. The last one may lack its line end, and may then be cut short. The error
// is io.EOF at the end.
func (n *NDJSON) Next() (Event, error) {
	for {
		line, _, err := n.lines.next()
		if err != nil {
			return Event{}, err
		}
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\uFEFF"))); len(line) > 0 {
			return Event{Data: line}, nil
		}
	}
}

// Buffered reports whether a further object has been read whole.
func (n *NDJSON) Buffered() bool {
	rest := bytes.TrimLeft(n.lines.buf[n.lines.start:], "\r\n")
	return len(rest) > 0 && rest[0] == '{' && bytes.IndexByte(rest, '\n') > 0
}
