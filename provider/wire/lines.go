package wire

import (
	"bytes"
	"errors"
	"io"
)

// lines cuts a stream at CRLF, LF or CR, wherever reads split it.
type lines struct {
	r      io.Reader
	buf    []byte
	start  int // of what has not been handed out
	seen   int // up to here there is no line end
	skipLF bool
	err    error // of the last read, kept until the lines before it are handed out
	max    int   // bytes of one line
	filled bool  // by the last read, so that there may be more at hand
}

// slowBuffer is enough for a stream that comes piece by piece, of which there may
// be thousands.
const slowBuffer = 512

func newLines(r io.Reader, max int) *lines {
	return &lines{r: r, buf: make([]byte, 0, slowBuffer), max: max}
}

// next returns the next line without its end. It is valid until the call after.
// whole is false for what stands at the end without a line end. The error is
// ErrTooLong or one of the reader, after all lines.
func (l *lines) next() (line []byte, whole bool, err error) {
	for {
		if l.skipLF && l.start < len(l.buf) {
			if l.buf[l.start] == '\n' {
				l.start++
				l.seen = l.start
			}
			l.skipLF = false
		}
		if end := lineEnd(l.buf[l.seen:]); end >= 0 {
			end += l.seen
			if end-l.start > l.max {
				return nil, false, ErrTooLong
			}
			line = l.buf[l.start:end]
			l.skipLF = l.buf[end] == '\r'
			l.start, l.seen = end+1, end+1
			return line, true, nil
		}
		l.seen = len(l.buf)
		if l.seen-l.start > l.max {
			return nil, false, ErrTooLong
		}
		if l.err != nil {
			line, l.start = l.buf[l.start:], len(l.buf)
			if len(line) > 0 && errors.Is(l.err, io.EOF) {
				return line, false, nil
			}
			return nil, false, l.err
		}
		l.fill()
	}
}

// lineEnd finds the first CR or LF with two searches for one byte each, which
// are much faster than one for either.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		b = b[:end]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// fill reads once more, after making room.
func (l *lines) fill() {
	if l.start > 0 {
		n := copy(l.buf, l.buf[l.start:])
		l.buf, l.seen, l.start = l.buf[:n], l.seen-l.start, 0
	}
	if len(l.buf) == cap(l.buf) || l.filled && cap(l.buf) < readBuffer {
		l.buf = append(make([]byte, 0, 2*cap(l.buf)), l.buf...)
	}
	n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	l.filled = len(l.buf) == cap(l.buf)
	l.err = err
}
