package openai

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
)

func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"hi","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`,
		`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"x"}]}],"tool_calls":[{"index":0,"function":{"arguments":{}}}]}}]}`,
		`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`, `[{"error":{}}]`, `{"error":"x"}`,
	} {
		f.Add("", []byte(body))
	}
	f.Fuzz(func(t *testing.T, event string, data []byte) {
		keep := func(llm.Frame) bool { return true }
		for _, r := range []reader{&chat{answer: &answer{emit: keep}}, &responses{&answer{emit: keep}}} {
			for range 2 {
				if r.take(event, data) != nil {
					break
				}
			}
			a := r.gathered()
			require.NoError(t, a.calls.flush(a))
			resp := a.Response(a.finish)
			for _, c := range resp.ToolCalls {
				require.NotEmpty(t, c.ID)
			}
		}
	})
}

func BenchmarkStream(b *testing.B) {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abc"}` + "\n\n"
	const events = 1000
	stream := strings.Repeat(chunk, events) + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	server := vectors.Serve(b, &vectors.Upstream{Status: 200, Chunks: []vectors.Chunk{{Data: stream}}})
	p, err := New(Config{BaseURL: server.URL})
	require.NoError(b, err)
	defer p.Close()
	req := &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		size := 0
		for f, err := range p.Stream(b.Context(), req) {
			if size += len(f.Text); err != nil {
				b.Fatal(err)
			}
		}
		require.Equal(b, events*len(" word"), size)
	}
}
