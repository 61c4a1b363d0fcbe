package wire

import (
	"bytes"
	"encoding/json"
	"io"
)

// Event is one piece of a streamed answer.
type Event struct {
	Name string // of a server-sent event's event: field, or "error" for llama.cpp's error: field
	Data []byte // never empty
}

// Done reports whether the event is the [DONE] that ends most streams.
func (e Event) Done() bool { return string(e.Data) == "[DONE]" }

// SSE reads server-sent events as the HTML standard says, and besides:
// an event at the end of the stream without its blank line counts if its data
// is complete JSON or [DONE]; [DONE] needs no blank line; a line that begins
// like JSON (Gemini's errors) and a field named error (llama.cpp's) are data.
type SSE struct {
	lines *lines
	max   int
	begun bool
	raw   bool // within JSON that stands outside of fields
	name  string
	named string // the last name
	data  []byte
	err   error
}

var _ Events = (*SSE)(nil)

// NewSSE reads events from r. A line, and the data of an event, may have max
// bytes.
func NewSSE(r io.Reader, max int) *SSE { return &SSE{lines: newLines(r, max), max: max} }

// Next returns the next event that has data. The error is io.EOF at the end of
// the stream, whether or not the stream is complete.
func (s *SSE) Next() (Event, error) {
	if s.err != nil {
		return Event{}, s.err
	}
	s.reset()
	for {
		line, _, err := s.lines.next()
		if err != nil {
			s.err = err
			if len(s.data) > 0 && json.Valid(s.data) {
				return Event{s.name, s.data}, nil
			}
			return Event{}, err
		}
		if !s.begun {
			line, s.begun = bytes.TrimPrefix(line, []byte("\uFEFF")), true
		}
		if len(line) == 0 {
			if len(s.data) > 0 {
				return Event{s.name, s.data}, nil
			}
			s.reset()
			continue
		}
		if s.take(line) {
			return Event{s.name, s.data}, nil
		}
		if len(s.data) > s.max {
			s.err = ErrTooLong
			return Event{}, s.err
		}
	}
}

func (s *SSE) reset() { s.name, s.data, s.raw = "", s.data[:0], false }

// take adds a line to the pending event and reports whether that ends it.
func (s *SSE) take(line []byte) bool {
	if s.raw || len(s.data) == 0 && (line[0] == '{' || line[0] == '[') {
		whole := !s.raw && json.Valid(line)
		s.raw = true
		s.data = append(s.data, line...)
		return whole
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		if len(s.data) > 0 {
			s.data = append(s.data, '\n')
		}
		done := len(s.data) == 0 && string(value) == "[DONE]"
		s.data = append(s.data, value...)
		return done
	case "error":
		s.name = "error"
		s.data = append(s.data[:0], value...)
	case "event":
		if string(value) != s.named { // most events of a stream have one name
			s.named = string(value)
		}
		s.name = s.named
	}
	return false
}

// Buffered reports whether an event that has data has been read whole.
func (s *SSE) Buffered() bool {
	if s.err != nil || s.raw {
		return false
	}
	rest, data := s.lines.buf[s.lines.start:], false
	if s.lines.skipLF {
		rest = bytes.TrimPrefix(rest, []byte{'\n'})
	}
	for {
		end := bytes.IndexByte(rest, '\n')
		switch {
		case end < 0:
			return false
		case end == 0, end == 1 && rest[0] == '\r':
			return data
		}
		data = data || end > len("data: \r") && bytes.HasPrefix(rest, dataField)
		rest = rest[end+1:]
	}
}

var dataField = []byte("data:")
