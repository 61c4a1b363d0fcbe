package openai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
)

func chunk(choice string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[` + choice + `],"usage":null}`
}

// plainText is what the short way makes of a piece; "" is nothing.
func plainText(data string, read func(*scan.Cursor) bool) string {
	var f scan.Form
	if text, ok := f.Text([]byte(data), read); ok {
		return scan.Unquote(text)
	}
	return ""
}

func TestPlainChunks(t *testing.T) {
	c := &chat{answer: &answer{version: "m"}}
	for data, want := range map[string]string{
		chunk(`{"index":0,"delta":{"content":"hi"},"finish_reason":null}`):                     "hi",
		chunk(`{"index":0,"delta":{"role":"assistant","content":"\u00e9\n"},"logprobs":null}`): "é\n",
		chunk(`{"index":0,"delta":{"content":"a","tool_calls":null,"refusal":null}}`):          "a",
		chunk(`{"index":1,"delta":{"content":"hi"}}`):                                          "",
		chunk(`{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}`):                   "",
		chunk(`{"index":0,"delta":{"content":""}}`):                                            "",
		chunk(`{"index":0,"delta":{"content":null}}`):                                          "",
		chunk(`{"index":0,"delta":{"content":[{"type":"text","text":"x"}]}}`):                  "",
		chunk(`{"index":0,"delta":{"content":"x","reasoning":"y"}}`):                           "",
		chunk(`{"index":0,"delta":{"content":"x","new":1}}`):                                   "",
		chunk(`{"index":0,"delta":{"content":"x"}},{"index":0,"delta":{"content":"y"}}`):       "",
		chunk(``): "",
		`{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":1}}`: "",
		`{"choices":[{"index":0,"delta":{"content":"hi"}}],"error":{"message":"x"}}`:     "",
		`{"object":"error","choices":[{"index":0,"delta":{"content":"hi"}}]}`:            "",
		`{"choices":[{"index":0,"delta":{"content":"hi"}}],"choices":[]}`:                "",
		`{"choices":[{"index":0,"delta":{"content":"hi"}}]`:                              "",
		`{"choices":{}}`: "", `[]`: "", `"x"`: "", ``: "",
	} {
		require.Equal(t, want, plainText(data, c.plain), data)
	}
	require.Empty(t, plainText(chunk(`{"delta":{"content":"hi"}}`), (&chat{answer: new(answer)}).plain), "the first chunk tells the model")
}

func TestPlainEvents(t *testing.T) {
	for data, want := range map[string]string{
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"delta":"hi","logprobs":[],"obfuscation":"x"}`: "hi",
		`{"type":"response.output_text.delta","delta":""}`:                      "",
		`{"type":"response.output_text.delta","delta":"hi","output_index":1.5}`: "",
		`{"type":"response.output_text.delta","delta":"hi","response":{}}`:      "",
		`{"type":"response.refusal.delta","delta":"hi"}`:                        "",
		`{"delta":"hi"}`: "",
	} {
		require.Equal(t, want, plainText(data, new(responses).plain), data)
	}
}

func frame(piece string) string { return "data: " + piece + "\n\n" }

func FuzzPlainChunk(f *testing.F) {
	providertest.FuzzPlain(f, func(body string) llm.Completer { return answering(APIChat, body) }, frame, chunk(`{"delta":{"role":"assistant"}}`),
		chunk(`{"index":0,"delta":{"content":"hi \"x\" é"},"finish_reason":null}`), chunk(`{"index":0,"delta":{"content":"hi","content":null}}`),
		chunk(`{"delta":{"content":"a"},"finish_reason":"stop"}`), `{"id":"d","choices":[{"delta":{"content":"a"}}],"model":"n"}`, "[DONE]")
}

func FuzzPlainEvent(f *testing.F) {
	providertest.FuzzPlain(f, func(body string) llm.Completer { return answering(APIResponses, body) }, frame, `{"type":"response.created"}`,
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"delta":"hi","logprobs":[],"obfuscation":"x"}`,
		`{"type":"response.output_text.delta","sequence_number":"5","delta":"","delta":"ho"}`,
		`{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":3}}}`)
}
