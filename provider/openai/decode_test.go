package openai

import (
	"testing"

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
	p := &Provider{cfg: Config{API: api}, door: "http://x.test"}
	p.Adapter = wire.NewAdapter(wire.Config{Transport: providertest.Body(body)}, wire.API{Call: p.call, Read: p.read})
	return p
}

func BenchmarkStream(b *testing.B) {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp",` +
		`"choices":[{"index":0,"delta":{"content":" %[1]d"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abc%[1]d"}` + "\n\n"
	const event = "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":%[1]d,"item_id":"msg_1",` +
		`"output_index":0,"content_index":0,"delta":" %[1]d","logprobs":[],"obfuscation":"abc%[1]d"}` + "\n\n"
	b.Run("chat", func(b *testing.B) {
		providertest.Bench(b, answering(APIChat, providertest.Pieces(chunk)+"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	})
	b.Run("responses", func(b *testing.B) {
		providertest.Bench(b, answering(APIResponses, providertest.Pieces(event)+`data: {"type":"response.completed","response":{"status":"completed"}}`+"\n\n"))
	})
}
