package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

func usage() *llm.Usage {
	return &llm.Usage{InputTokens: new(int64(12)), OutputTokens: new(int64(3)), CachedInputTokens: new(int64(8)), ReasoningTokens: new(int64(1))}
}

var weather = llm.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}

func TestWholeAnswer(t *testing.T) {
	r := script(t, fake.New(fake.Step{Pieces: []string{"Hel", "lo <&> \"\n\u2028"}, Usage: usage()}))
	got := r.ask(t, `{"model":"support","messages":[{"role":"user","content":"hello"}],"colour":"red","user":"ann"}`)
	require.Equal(t, 200, got.status)
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	require.Equal(t, []string{"fake", "model", `field "colour" has no effect here`},
		[]string{got.header.Get("X-Llmbus-Provider"), got.header.Get("X-Llmbus-Served-By"), got.header.Get("X-Llmbus-Warnings")})
	require.Contains(t, got.body, `"id":"chatcmpl-`+got.header.Get("X-Request-Id")+`"`)
	golden(t, "completion.json", pretty(t, got.body))
}

func TestWholeToolCall(t *testing.T) {
	r := script(t, fake.New(fake.CallsTools(weather)))
	got := r.ask(t, hello)
	require.Equal(t, 200, got.status)
	golden(t, "completion_tools.json", pretty(t, got.body))
}

func TestStream(t *testing.T) {
	r := script(t, fake.New(fake.Step{Pieces: []string{"Hel", "lo <&> \"\n\u2028"}, Usage: usage()}))
	got := r.ask(t, helloStream)
	require.NoError(t, got.cut)
	require.Equal(t, []any{200, "fake", "no-cache"}, []any{got.status, got.header.Get("X-Llmbus-Provider"), got.header.Get("Cache-Control")})
	golden(t, "stream.txt", got.body)

	got = r.ask(t, `{"model":"support","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}`)
	golden(t, "stream_usage.txt", got.body)
}

func TestStreamedToolCalls(t *testing.T) {
	second := llm.ToolCall{ID: "call_2", Name: "time", Arguments: `{}`}
	r := script(t, fake.New(fake.CallsTools(weather, second)))
	golden(t, "stream_tools.txt", r.ask(t, helloStream).body)
}

// TestStreamBrokenOff breaks a stream after a part of it was sent: an error event,
// no terminator, and a body without its end.
func TestStreamBrokenOff(t *testing.T) {
	r := script(t, fake.New(fake.Step{Pieces: []string{"Hel"}, Err: llm.Errorf(llm.CodeInterrupted, "the answer of fake broke off")}))
	got := r.ask(t, helloStream)
	require.Error(t, got.cut, "the body looks whole")
	events := got.events(t)
	require.Contains(t, events[len(events)-2], `"content":"Hel"`)
	f := faultIn(t, events[len(events)-1])
	require.Equal(t, "interrupted", *f.Code)
	golden(t, "stream_error.txt", got.body)
}

func TestErrorBeforeTheFirstText(t *testing.T) {
	r := script(t, fake.New(fake.Fails(&llm.Error{Code: llm.CodeUnavailable, Message: "no target could serve", RetryAfterMS: 1500})))
	for _, body := range []string{hello, helloStream} {
		got := r.ask(t, body)
		require.Equal(t, []any{503, "2", "1650", "true"},
			[]any{got.status, got.header.Get("Retry-After"), got.header.Get("Retry-After-Ms"), got.header.Get("X-Should-Retry")})
		golden(t, "error.json", pretty(t, got.body))
	}
}
