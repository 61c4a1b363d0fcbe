package openai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const wholeAnswer = `{"id":"c","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant",` +
	`"content":"a \"word\" é\n","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":250,"completion_tokens":20,"total_tokens":270,"prompt_tokens_details":{"cached_tokens":7,"audio_tokens":0},` +
	`"completion_tokens_details":{"reasoning_tokens":3,"audio_tokens":0}},"service_tier":"default","system_fingerprint":"fp"}`

func TestPlainAnswer(t *testing.T) {
	sameAsDecoded(t, []byte(wholeAnswer))
	for _, data := range []string{
		`{"choices":[{"message":{"content":"x"}}]}`,
		`{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"length"}],"usage":null}`,
		`{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens_details":null,"total_tokens":1}}`,
		`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		`{"choices":[{"message":{"content":null}}]}`,
		`{"choices":[{"message":{"content":"","content":"x"}}]}`,
	} {
		_, ok := plainAnswer([]byte(data))
		require.True(t, ok, data)
		sameAsDecoded(t, []byte(data))
	}
	for _, data := range []string{
		`{"choices":[{"message":{"content":"x","content":null}}]}`,
		`{"choices":[{"message":{"content":"x"},"delta":{}}]}`,
		`{"choices":[{"index":0,"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":null}`,
		`{"choices":[{"message":{"content":"x","tool_calls":[{"id":"1"}]}}]}`,
		`{"choices":[{"message":{"content":"x","reasoning_content":"y"}}]}`,
		`{"choices":[{"message":{"content":"x","Content":"y"}}]}`,
		`{"choices":[{"message":{"content":"x","content":"y"}}]}`,
		`{"choices":[{"index":1,"message":{"content":"x"}}]}`,
		`{"choices":[{"message":{"content":"x"}},{"message":{"content":"y"}}]}`,
		`{"choices":[{"message":{"content":"x"}}],"choices":[]}`,
		`{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1.5}}`,
		`{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_cache_hit_tokens":1}}`,
		`{"choices":[{"message":{"content":"x"}}],"error":{"message":"z"}}`,
		`{"object":"error","choices":[{"message":{"content":"x"}}]}`,
		`{"choices":[{"message":{"content":"x"}}]`, `{"choices":[]}`, `{}`, `[]`, ``,
	} {
		_, ok := plainAnswer([]byte(data))
		require.False(t, ok, data)
	}
}

// What the short way takes, the long way takes for the same answer.
func FuzzPlainAnswer(f *testing.F) {
	f.Add([]byte(wholeAnswer))
	f.Add([]byte(chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`)))
	f.Add([]byte(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens_details":{"reasoning_tokens":2}}}`))
	f.Fuzz(sameAsDecoded)
}

func sameAsDecoded(t *testing.T, data []byte) {
	short, ok := plainAnswer(data)
	if !ok {
		return
	}
	var long completion
	require.NoError(t, json.Unmarshal(data, &long))
	require.False(t, long.reports())
	require.Equal(t, long.Usage.neutral(), short.Usage.neutral())
	long.Usage, short.Usage, long.Error = nil, nil, nil // an error that is null is none
	require.Equal(t, long, short)
}

func BenchmarkPlainAnswer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := plainAnswer([]byte(wholeAnswer)); !ok {
			b.Fatal("the answer is plain")
		}
	}
}
