package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

type seen struct{ Name, Data string }

func events(t testing.TB, r io.Reader, max int) ([]seen, error) {
	t.Helper()
	in := &counted{Reader: r}
	s := NewSSE(in, max)
	var all []seen
	for {
		e, err := in.next(t, s)
		if err != nil {
			_, again := s.Next()
			require.Equal(t, err, again, "the error stays")
			return all, err
		}
		require.NotEmpty(t, e.Data)
		all = append(all, seen{e.Name, string(e.Data)})
	}
}

func TestSSE(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   []seen
	}{
		"LF":                             {"data: a\n\ndata: b\n\n", []seen{{"", "a"}, {"", "b"}}},
		"CRLF":                           {"data: a\r\n\r\ndata: b\r\n\r\n", []seen{{"", "a"}, {"", "b"}}},
		"CR":                             {"data: a\r\rdata: b\r\r", []seen{{"", "a"}, {"", "b"}}},
		"mixed line ends":                {"data: a\r\n\ndata: b\r\r\n", []seen{{"", "a"}, {"", "b"}}},
		"byte order mark":                {"\uFEFFdata: a\n\n", []seen{{"", "a"}}},
		"no space after the colon":       {"data:a\n\n", []seen{{"", "a"}}},
		"one space only is taken":        {"data:  a\n\n", []seen{{"", " a"}}},
		"comments":                       {": ping\n\n:\n\n: OPENROUTER PROCESSING\ndata: a\n\n", []seen{{"", "a"}}},
		"data in several lines":          {"data: {\ndata: }\n\n", []seen{{"", "{\n}"}}},
		"blank data":                     {"data:\n\ndata: \n\ndata: a\n\n", []seen{{"", "a"}}},
		"names do not outlive an event":  {"event: x\n\nevent: y\ndata: a\n\ndata: b\n\n", []seen{{"y", "a"}, {"", "b"}}},
		"id, retry and unknown fields":   {"id: 1\nretry: 9\nfoo: bar\nnocolon\ndata: a\n\n", []seen{{"", "a"}}},
		"other line separators are data": {"data: a\u2028b\u0085c\n\n", []seen{{"", "a\u2028b\u0085c"}}},
		"an error field":                 {"error: {\"code\":500}\n\n", []seen{{"error", `{"code":500}`}}},
		"JSON outside of a field":        {"{\"error\":1}\ndata: a\n\n", []seen{{"", `{"error":1}`}, {"", "a"}}},
		"printed JSON outside":           {"[{\n  \"error\": 1\n}]\n\ndata: a\n\n", []seen{{"", `[{  "error": 1}]`}, {"", "a"}}},
		"[DONE] without a blank line":    {"data: [DONE]\n", []seen{{"", "[DONE]"}}},
		"[DONE] without a line end":      {"data: [DONE]", []seen{{"", "[DONE]"}}},
		"complete JSON at the end":       {"data: {\"a\":1}", []seen{{"", `{"a":1}`}}},
		"cut JSON at the end":            {"data: a\n\ndata: {\"a\":", []seen{{"", "a"}}},
		"no JSON at the end":             {"data: nearly\n", nil},
		"nothing":                        {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(tc.stream), iotest.OneByteReader(strings.NewReader(tc.stream)), iotest.DataErrReader(strings.NewReader(tc.stream)),
			} {
				got, err := events(t, r, 1<<20)
				require.Equal(t, io.EOF, err)
				require.Equal(t, tc.want, got)
			}
		})
	}
}

func TestSSEDeliversAnEventBeforeTheNextByteComes(t *testing.T) {
	for _, stream := range []string{"data: a\n\n", "data: a\r\n\r\n", "data: a\r\r", "data: [DONE]\n"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, stream) }()
		e, err := NewSSE(r, 100).Next()
		require.NoError(t, err)
		require.NotEmpty(t, e.Data)
	}
}

// Text before what is no event, or no whole one, must not wait for the next.
func TestSSEIsBufferedOnlyIfAnEventIs(t *testing.T) {
	for rest, want := range map[string]bool{
		"": false, "data: {}\n": false, "data: x\n": false, ": ping\n\n": false, "event: ping\n\n": false, "\n": false, "data": false, "\r": false,
		"data:\n\n": false, "data: \r\n\r\n": false, "data: {}\n\n": true, "data: {}\r\n\r\n": true, "event: x\ndata: {}\n\n": true,
	} {
		s := NewSSE(strings.NewReader("data: a\r\n\r\n"+rest), 100)
		_, err := s.Next()
		require.NoError(t, err)
		require.Equal(t, want, s.Buffered(), "%q", rest)
	}
}

func TestSSEBoundsLinesAndEvents(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	got, err := events(t, strings.NewReader("data: "+long+"\n\n"), 200<<10)
	require.Equal(t, io.EOF, err)
	require.Equal(t, []seen{{"", long}}, got)

	_, err = events(t, strings.NewReader("data: "+long+"\n\n"), 50<<10)
	require.ErrorIs(t, err, ErrTooLong)
	_, err = events(t, strings.NewReader(strings.Repeat("data: "+long[:1000]+"\n", 100)), 50<<10)
	require.ErrorIs(t, err, ErrTooLong)
}

func TestSSEKeepsWhatCameBeforeABrokenRead(t *testing.T) {
	broken := errors.New("broken")
	got, err := events(t, io.MultiReader(strings.NewReader("data: a\n\ndata: {}\n"), iotest.ErrReader(broken)), 100)
	require.ErrorIs(t, err, broken)
	require.Equal(t, []seen{{"", "a"}, {"", "{}"}}, got)
}

func FuzzSSE(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\uFEFFdata:{\r\ndata:}\r\r\n", "error: {}\n\n{\"a\":1}\n: c\n\nevent: x\ndata", "data: [DONE]", "data:x\r\n\r\ndata: \r\n\r\n", "data: a\n\ndata:\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := events(t, strings.NewReader(string(stream)), 1<<10)
		bytewise, errBytewise := events(t, iotest.OneByteReader(strings.NewReader(string(stream))), 1<<10)
		require.Equal(t, err, errBytewise)
		require.Equal(t, whole, bytewise, "reads may split anywhere")
	})
}

func BenchmarkSSE(b *testing.B) {
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n"
	stream := strings.Repeat(chunk, 1000)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewSSE(strings.NewReader(stream), 1<<20)
		for {
			if _, err := s.Next(); err != nil {
				break
			}
		}
	}
}
