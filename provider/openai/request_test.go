package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

var history = []llm.Message{
	{Role: llm.RoleSystem, Content: llm.Text("be brief")},
	{Role: llm.RoleUser, Name: "ann", Content: llm.Content{
		{Type: llm.PartText, Text: "look"}, {Type: llm.PartImage, Image: &llm.ImageURL{URL: "https://a.example/b.png", Detail: "low"}},
	}},
	{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "call_n1", Name: "f", Arguments: ""}}},
	{Role: llm.RoleTool, Name: "f", ToolCallID: "call_n1", Content: llm.Text("4")},
}

func full() *llm.Request {
	return &llm.Request{
		Model: "m", Messages: history, MaxTokens: 9, Temperature: new(0.5), TopP: new(0.9),
		Tools:      []llm.Tool{{Name: "f"}, {Name: "g", Parameters: json.RawMessage(`{"type":"object"}`), Strict: new(true)}},
		ToolChoice: &llm.ToolChoice{Mode: llm.ToolChoiceNamed, Name: "f"}, ParallelToolCalls: new(false),
		JSONSchema: &llm.JSONSchema{Schema: json.RawMessage(`{"type":"object"}`)},
	}
}

func TestChatBody(t *testing.T) {
	cfg := Config{Family: FamilyOpenAI, MaxTokensField: maxCompletionTokens}
	req := full()
	req.Stop, req.Seed = []string{"END"}, new(int64(7))
	body, err := cfg.chatBody(nil, req, true)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"model":"m", "stream":true, "stream_options":{"include_usage":true},
		"messages":[
			{"role":"system","content":"be brief"},
			{"role":"user","name":"ann","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://a.example/b.png","detail":"low"}}]},
			{"role":"assistant","tool_calls":[{"id":"call_n1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"call_n1","content":"4"}],
		"tools":[
			{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}},
			{"type":"function","function":{"name":"g","parameters":{"type":"object"},"strict":true}}],
		"tool_choice":{"type":"function","function":{"name":"f"}}, "parallel_tool_calls":false,
		"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}},
		"max_completion_tokens":9, "temperature":0.5, "top_p":0.9, "stop":["END"], "seed":7}`, string(body))
	require.Equal(t, full().Messages, req.Messages, "the request is not modified")
}

func TestChatBodySendsNothingUnasked(t *testing.T) {
	req := &llm.Request{
		Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}},
		ToolChoice: &llm.ToolChoice{Mode: llm.ToolChoiceAuto}, ParallelToolCalls: new(true),
	}
	body, err := (&Config{Family: FamilyCompatible, MaxTokensField: maxTokens}).chatBody(nil, req, false)
	require.NoError(t, err)
	require.JSONEq(t, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, string(body))

	body, err = (&Config{Family: FamilyCompatible, NoStreamUsage: true}).chatBody(nil, req, true)
	require.NoError(t, err)
	require.NotContains(t, string(body), "stream_options")
}

func TestMistralGetsItsOwnWords(t *testing.T) {
	cfg := Config{Family: FamilyMistral, MaxTokensField: maxTokens}
	req := full()
	req.Seed = new(int64(7))
	data, err := cfg.chatBody(nil, req, true)
	require.NoError(t, err)
	var body chatRequest
	require.NoError(t, json.Unmarshal(data, &body))
	id := body.Messages[2].ToolCalls[0].ID
	require.Regexp(t, `^[A-Za-z0-9]{9}$`, id)
	require.Equal(t, id, body.Messages[3].ToolCallID, "a call and its result stay together")
	require.Equal(t, int64(7), *body.RandomSeed)
	require.Nil(t, body.Seed)
	require.Nil(t, body.StreamOptions)
	require.Equal(t, 9, body.MaxTokens)
}

func TestLongCallIDsAreShortened(t *testing.T) {
	cfg := Config{Family: FamilyOpenAI}
	require.Equal(t, "functions.f:0", cfg.callID("functions.f:0"))
	require.Len(t, cfg.callID(strings.Repeat("x", 41)), 9)
}

func TestResponsesBody(t *testing.T) {
	body, err := (&Config{Family: FamilyOpenAI}).responsesBody(nil, full(), true)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"model":"m", "stream":true, "store":false, "instructions":"be brief",
		"input":[
			{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"https://a.example/b.png","detail":"low"}]},
			{"type":"function_call","call_id":"call_n1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"call_n1","output":"4"}],
		"tools":[
			{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false},
			{"type":"function","name":"g","parameters":{"type":"object"},"strict":true}],
		"tool_choice":{"type":"function","name":"f"}, "parallel_tool_calls":false,
		"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"}}},
		"max_output_tokens":9, "temperature":0.5, "top_p":0.9}`, string(body))
}

func TestResponsesInputKeepsLaterSystemMessages(t *testing.T) {
	req := &llm.Request{Model: "m", ToolChoice: &llm.ToolChoice{Mode: llm.ToolChoiceRequired}, Tools: []llm.Tool{{Name: "f"}}, Messages: []llm.Message{
		{Role: llm.RoleSystem, Content: llm.Text("a")}, {Role: llm.RoleSystem, Content: llm.Text("b")},
		{Role: llm.RoleUser, Content: llm.Text("hi")}, {Role: llm.RoleAssistant, Content: llm.Text("yes")}, {Role: llm.RoleSystem, Content: llm.Text("c")},
	}}
	data, err := (&Config{}).responsesBody(nil, req, false)
	require.NoError(t, err)
	var body map[string]any
	require.NoError(t, json.Unmarshal(data, &body))
	require.Equal(t, "a\n\nb", body["instructions"])
	require.Equal(t, "required", body["tool_choice"])
	require.Equal(t, []any{
		map[string]any{"role": "user", "content": "hi"}, map[string]any{"role": "assistant", "content": "yes"}, map[string]any{"role": "system", "content": "c"},
	}, body["input"])

	req.Messages = req.Messages[:1]
	data, err = (&Config{}).responsesBody(nil, req, false)
	require.NoError(t, err)
	require.Contains(t, string(data), `"input":[{"role":"system","content":"a"}]`)
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	cfg := &Config{}
	image := llm.Content{{Type: llm.PartImage, Image: &llm.ImageURL{URL: "https://a.example/b.png"}}}
	for name, tc := range map[string]struct {
		change        func(*llm.Request)
		chat          bool // refused there, too
		responsesOnly bool
	}{
		"a boolean schema": {func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`true`)} }, true, false},
		"a broken schema":  {func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`{`)} }, true, false},
		"a tool's image": {func(r *llm.Request) {
			r.Messages = []llm.Message{{Role: llm.RoleTool, ToolCallID: "a", Content: image}}
		}, true, false},
		"a system image":     {func(r *llm.Request) { r.Messages = []llm.Message{{Role: llm.RoleSystem, Content: image}} }, true, false},
		"an assistant image": {func(r *llm.Request) { r.Messages = []llm.Message{{Role: llm.RoleAssistant, Content: image}} }, true, false},
		"a stop sequence":    {func(r *llm.Request) { r.Stop = []string{"x"} }, false, true},
		"a seed":             {func(r *llm.Request) { r.Seed = new(int64(1)) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := full()
			tc.change(req)
			_, err := cfg.responsesBody(nil, req, false)
			require.Equal(t, provider.DetailUnsupported, provider.AsFailure(err).Detail)
			_, err = cfg.chatBody(nil, req, false)
			if tc.responsesOnly {
				require.NoError(t, err)
				return
			}
			require.Equal(t, llm.OutcomeInvalidRequest, provider.AsFailure(err).Outcome)
			require.Equal(t, provider.DetailUnsupported, provider.AsFailure(err).Detail)
		})
	}
}
