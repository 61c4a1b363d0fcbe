package openai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/scan"
)

func chunk(choice string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[` + choice + `],"usage":null}`
}

func TestPlainDelta(t *testing.T) {
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
		text, ok := plainDelta([]byte(data))
		require.Equal(t, want != "", ok, data)
		if ok {
			require.Equal(t, want, scan.Unquote(text), data)
		}
	}
}

// What the short way takes, the long way takes for the same text.
func FuzzPlainDelta(f *testing.F) {
	f.Add([]byte(chunk(`{"index":0,"delta":{"content":"hi \"x\" é"},"finish_reason":null}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, ok := plainDelta(data)
		if !ok {
			return
		}
		var body completion
		require.NoError(t, json.Unmarshal(data, &body))
		require.False(t, body.reports())
		require.Len(t, body.Choices, 1)
		require.Equal(t, scan.Unquote(text), body.Choices[0].Delta.Content.text)
		require.Empty(t, body.Choices[0].FinishReason)
	})
}
