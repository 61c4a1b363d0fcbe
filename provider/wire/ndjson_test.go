package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func drain(next func() (Event, error)) ([]string, error) {
	var all []string
	for {
		value, err := next()
		if err != nil {
			return all, err
		}
		all = append(all, string(value.Data))
	}
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
			got, err := drain(NewNDJSON(iotest.OneByteReader(strings.NewReader(tc.stream)), 100).Next)
			require.Equal(t, io.EOF, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := drain(NewNDJSON(strings.NewReader(strings.Repeat("x", 20<<10)), 100).Next)
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
			got, err := drain(NewArray(iotest.OneByteReader(strings.NewReader(tc.stream)), 100).Next)
			require.Equal(t, tc.err, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := drain(NewArray(strings.NewReader(`[{"a":"`+strings.Repeat("x", 200)), 100).Next)
	require.ErrorIs(t, err, ErrTooLong)
}

func FuzzNDJSON(f *testing.F) {
	f.Add("{}\n\r\n{\"a\":1}")
	f.Add("[{\"a\":\"}\"},\n{}]")
	f.Fuzz(func(t *testing.T, stream string) {
		for _, reader := range []func(io.Reader) func() (Event, error){
			func(r io.Reader) func() (Event, error) { return NewNDJSON(r, 1<<10).Next },
			func(r io.Reader) func() (Event, error) { return NewArray(r, 1<<10).Next },
		} {
			whole, err := drain(reader(strings.NewReader(stream)))
			bytewise, errBytewise := drain(reader(iotest.OneByteReader(strings.NewReader(stream))))
			if !errors.Is(err, ErrTooLong) && !errors.Is(errBytewise, ErrTooLong) {
				require.Equal(t, whole, bytewise)
				require.Equal(t, err, errBytewise)
			}
		}
	})
}
