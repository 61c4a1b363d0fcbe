package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func drain(t testing.TB, r io.Reader, open func(io.Reader, int) Events, max int) ([]string, error) {
	t.Helper()
	in := &counted{Reader: r}
	pieces := open(in, max)
	var all []string
	for {
		value, err := in.next(t, pieces)
		if err != nil {
			return all, err
		}
		all = append(all, string(value.Data))
	}
}

func ndjson(r io.Reader, max int) Events { return NewNDJSON(r, max) }
func array(r io.Reader, max int) Events  { return NewArray(r, max) }

// counted counts the reads of a stream.
type counted struct {
	io.Reader
	reads int
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

// next holds Buffered to its word: what comes next comes without a read.
func (c *counted) next(t testing.TB, pieces Events) (Event, error) {
	t.Helper()
	buffered, reads := pieces.Buffered(), c.reads
	event, err := pieces.Next()
	if buffered {
		require.Equal(t, reads, c.reads)
	}
	return event, err
}

func TestNDJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   []string
	}{
		"lines":              {"{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}},
		"blank lines":        {"\n\n{}\r\n \r\n{}\n\n", []string{"{}", "{}"}},
		"no last line end":   {"{}\n{\"a\":1}", []string{"{}", `{"a":1}`}},
		"byte order mark":    {"\uFEFF{}\n", []string{"{}"}},
		"nothing":            {"", nil},
		"a line that is cut": {"{}\n{\"a\":", []string{"{}", `{"a":`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := drain(t, iotest.OneByteReader(strings.NewReader(tc.stream)), ndjson, 100)
			require.Equal(t, io.EOF, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := drain(t, strings.NewReader(strings.Repeat("x", 20<<10)), ndjson, 100)
	require.ErrorIs(t, err, ErrTooLong)
}

func TestArray(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"compact":            {`[{"a":1},{"b":{"c":2}}]`, []string{`{"a":1}`, `{"b":{"c":2}}`}, io.EOF},
		"printed":            {"[{\n \"a\": 1\n}\n,\r\n{}\n]\n", []string{"{\n \"a\": 1\n}", "{}"}, io.EOF},
		"braces in strings":  {`[{"a":"}{\"}\\"}]`, []string{`{"a":"}{\"}\\"}`}, io.EOF},
		"values in a row":    {"{}{}\n{}", []string{"{}", "{}", "{}"}, io.EOF},
		"cut between values": {`[{},`, []string{"{}"}, io.EOF},
		"cut within a value": {`[{},{"a":`, []string{"{}"}, io.ErrUnexpectedEOF},
		"empty":              {"[]", nil, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := drain(t, iotest.OneByteReader(strings.NewReader(tc.stream)), array, 100)
			require.Equal(t, tc.err, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := drain(t, strings.NewReader(`[{"a":"`+strings.Repeat("x", 200)), array, 100)
	require.ErrorIs(t, err, ErrTooLong)
}

func FuzzNDJSON(f *testing.F) {
	f.Add("{}\n\r\n{\"a\":1}")
	f.Add("[{\"a\":\"}\"},\n{}]")
	f.Fuzz(func(t *testing.T, stream string) {
		for _, open := range []func(io.Reader, int) Events{ndjson, array} {
			whole, err := drain(t, strings.NewReader(stream), open, 1<<10)
			bytewise, errBytewise := drain(t, iotest.OneByteReader(strings.NewReader(stream)), open, 1<<10)
			if !errors.Is(err, ErrTooLong) && !errors.Is(errBytewise, ErrTooLong) {
				require.Equal(t, whole, bytewise)
				require.Equal(t, err, errBytewise)
			}
		}
	})
}
