package openai

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// A body made from the caller's own text means the same as one that was encoded
// anew.
func TestMessagesAreSplicedWhereTheyMayBe(t *testing.T) {
	for messages, spliced := range map[string]bool{
		`[{"role":"system","content":"a\u00e9"} , {"content":"b","role":"user","name":"n"}]`: true,
		`[{"role":"user","content":"x","unknown":"y"}]`:                                      false,
		`[{"role":"tool","content":"x","tool_call_id":"` + strings.Repeat("1", 41) + `"}]`:   false,
		`[{"role":"tool","content":"x","tool_call_id":"1","name":"f"}]`:                      false,
		`[{"role":"tool","content":"x","tool_call_id":"1"}]`:                                 true,
		`[{"role":"user","content":[{"type":"text","text":"x"}]}]`:                           false,
	} {
		req, err := llm.DecodeRequest([]byte(`{"messages":` + messages + `,"max_tokens":5}`))
		require.NoError(t, err)
		req.Model = "m"
		cfg := Config{Family: FamilyOpenAI, MaxTokensField: maxCompletionTokens}
		got, err := cfg.chatBody(nil, req, false)
		require.NoError(t, err)
		require.Equal(t, spliced, strings.Contains(string(got), messages), "%s", got)

		again := llm.Request{Model: req.Model, Messages: req.Messages, MaxTokens: req.MaxTokens}
		want, err := cfg.chatBody(nil, &again, false)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}

// What is written by hand says the same as what encoding/json writes.
func TestThePlainRestOfABodyIsTheSame(t *testing.T) {
	const messages = `[{"role":"user","content":"x"}]`
	for _, body := range []chatRequest{
		{Model: `a "model"/1`},
		{Model: "m", MaxTokens: 7, Temperature: new(0.0), TopP: new(0.000001), Seed: new(int64(-3)), Stream: true, StreamOptions: &streamOptions{true}},
		{Model: "m", MaxCompletionTokens: 7, Temperature: new(1.25), RandomSeed: new(int64(0))},
		{Model: "m", Stop: []string{"x"}, Tools: []llm.Tool{{Name: "f"}}},
	} {
		got, err := body.splice(nil, []byte(messages))
		require.NoError(t, err)
		body.Messages = []llm.Message{{Role: llm.RoleUser, Content: llm.Text("x")}}
		want, err := encode(body)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}
