package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

func TestFrameStringsSurviveTheWire(t *testing.T) {
	for name, tc := range map[string]struct{ text, wire, back string }{
		"plain":        {"hello", `"hello"`, "hello"},
		"empty":        {"", `""`, ""},
		"escapes":      {"\"\\\n\r\t\b\x00\x1f", `"\"\\\n\r\t\u0008\u0000\u001f"`, "\"\\\n\r\t\b\x00\x1f"},
		"html":         {"<a&b>", `"<a&b>"`, "<a&b>"},
		"multi-byte":   {"né日本👍", `"né日本👍"`, "né日本👍"},
		"line ends":    {"a\u2028b\u2029", `"a\u2028b\u2029"`, "a\u2028b\u2029"},
		"bad bytes":    {"a\xff\xfeb", `"a\ufffd\ufffdb"`, "a\ufffd\ufffdb"},
		"cut rune":     {"a\xe6\x97", `"a\ufffd\ufffd"`, "a\ufffd\ufffd"},
		"surrogate":    {"\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`, "\ufffd\ufffd\ufffd"},
		"real U+FFFD":  {"\ufffd", "\"\ufffd\"", "\ufffd"},
		"delete, C1":   {"\x7f\u0085", "\"\x7f\u0085\"", "\x7f\u0085"},
		"escape first": {"\nx", `"\nx"`, "\nx"},
	} {
		t.Run(name, func(t *testing.T) {
			frame := llm.Frame{Seq: 1, Type: llm.FrameDelta, Text: tc.text}
			wire, err := frame.AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, `{"seq":1,"attempt":0,"type":"delta","text":`+tc.wire+`}`, string(wire))
			back, err := llm.DecodeFrame(wire)
			require.NoError(t, err)
			require.Equal(t, tc.back, back.Text)
		})
	}
}

func TestAppendJSONKeepsWhatIsThere(t *testing.T) {
	wire, err := (&llm.Frame{Seq: 7, Type: llm.FramePing}).AppendJSON([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, `before{"seq":7,"attempt":0,"type":"ping"}`, string(wire))
}

func TestAppendJSONReportsWhatCannotBeWritten(t *testing.T) {
	broken := llm.Frame{Seq: 1, Type: llm.FrameEnd, Response: &llm.Response{Metadata: json.RawMessage("{")}}
	_, err := broken.AppendJSON(nil)
	require.Error(t, err)
}

func TestDecodeFrameRefuses(t *testing.T) {
	for payload, want := range map[string]string{
		``:                         "not a frame",
		`[]`:                       "not a frame",
		`{"type":"delta"}`:         "no seq",
		`{"seq":1}`:                "no type",
		`{"seq":1,"type":"end"}`:   "no response",
		`{"seq":1,"type":"error"}`: "no error",
		`{"seq":-1,"type":"ping"}`: "not a frame",
	} {
		_, err := llm.DecodeFrame([]byte(payload))
		require.ErrorContains(t, err, want, payload)
	}
	unknown, err := llm.DecodeFrame([]byte(`{"seq":1,"type":"thought","new":1}`))
	require.NoError(t, err, "an old reader survives a new worker")
	require.False(t, unknown.Terminal())
}

func TestDecodeReply(t *testing.T) {
	resp, err := llm.DecodeReply([]byte(`{"id":"1","content":"hi","served_by":"model"}`))
	require.NoError(t, err)
	require.Equal(t, "hi", resp.Content)

	_, err = llm.DecodeReply([]byte(`{"error":{"code":"busy","message":"full","retry_after_ms":250}}`))
	require.Equal(t, &llm.Error{Code: llm.CodeBusy, Message: "full", RetryAfterMS: 250}, err)

	for _, payload := range []string{"", "hello", "{}", "[]", `{"id":"1"}`, `{"error":null}`} {
		_, err = llm.DecodeReply([]byte(payload))
		require.Error(t, err, payload)
		require.NotErrorIs(t, err, llm.ErrInternal)
	}
}

func BenchmarkAppendDelta(b *testing.B) {
	frame := llm.Frame{Seq: 123, Attempt: 1, Type: llm.FrameDelta, Text: " a token"}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = frame.AppendJSON(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeDelta(b *testing.B) {
	wire, err := (&llm.Frame{Seq: 123, Attempt: 1, Type: llm.FrameDelta, Text: " a token"}).AppendJSON(nil)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := llm.DecodeFrame(wire); err != nil {
			b.Fatal(err)
		}
	}
}
