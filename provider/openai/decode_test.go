package openai

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
	"github.com/llmbus/llmbus/provider/wire"
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
		for _, api := range []API{APIChat, APIResponses} {
			piece := "event: " + event + "\ndata: " + string(data) + "\n\n"
			for _, body := range []string{string(data), piece + piece} {
				providertest.Ask(t, answering(api, body), true)
			}
		}
	})
}

// answering is a Provider whose every answer is body.
func answering(api API, body string) *Provider {
	return &Provider{cfg: Config{API: api}, door: "http://x.test", client: wire.New(wire.Config{Transport: providertest.Body(body)})}
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
