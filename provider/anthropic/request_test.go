package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/stretchr/testify/require"
)

func question(edit func(*llm.Request)) *llm.Request {
	req := &llm.Request{Model: "m", MaxTokens: 5, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("q")}}}
	edit(req)
	return req
}

func image(url string) llm.Part { return llm.Part{Type: llm.PartImage, Image: &llm.ImageURL{URL: url}} }

var weather = llm.Tool{Name: "weather", Parameters: json.RawMessage(`{"type":"object"}`)}

// TestTranslate names what each request becomes, beside the model.
func TestTranslate(t *testing.T) {
	const user = `"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]`
	for name, c := range map[string]struct {
		edit     func(*llm.Request)
		want     string
		warnings []string
	}{
		"plain":              {func(*llm.Request) {}, user, nil},
		"default max_tokens": {func(r *llm.Request) { r.MaxTokens = 0 }, `"max_tokens":77,` + user, nil},
		"temperature is lowered": {func(r *llm.Request) { r.Temperature = new(1.7) }, user + `,"temperature":1`,
			[]string{"anthropic: temperature was lowered to 1"}},
		"sampling": {func(r *llm.Request) { r.Temperature, r.TopP, r.Stop = new(0.0), new(0.5), []string{"END"} },
			user + `,"temperature":0,"top_p":0.5,"stop_sequences":["END"]`, nil},
		"tool without parameters": {func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "f", Strict: new(true)}} },
			user + `,"tools":[{"name":"f","input_schema":{"type":"object","properties":{}},"strict":true}]`, nil},
		"named tool": {func(r *llm.Request) {
			r.Tools, r.ToolChoice = []llm.Tool{weather}, &llm.ToolChoice{Mode: llm.ToolChoiceNamed, Name: "weather"}
		}, user + `,"tools":[{"name":"weather","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"weather"}`, nil},
		"no tool, serially": {func(r *llm.Request) {
			r.Tools, r.ToolChoice, r.ParallelToolCalls = []llm.Tool{weather}, &llm.ToolChoice{Mode: llm.ToolChoiceNone}, new(false)
		}, user + `,"tools":[{"name":"weather","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}`, nil},
		"serial tools": {func(r *llm.Request) { r.Tools, r.ParallelToolCalls = []llm.Tool{weather}, new(false) },
			user + `,"tools":[{"name":"weather","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, nil},
		"choice without tools": {func(r *llm.Request) {
			r.ToolChoice, r.ParallelToolCalls = &llm.ToolChoice{Mode: llm.ToolChoiceAuto}, new(false)
		}, user, nil},
		"images": {func(r *llm.Request) {
			r.Messages[0].Content = llm.Content{image("https://x.test/a.png"), image("data:image/webp;base64,AAAA"), {Type: llm.PartText, Text: "q"}}
			r.Messages[0].Content[0].Image.Detail = "low"
		}, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}},
			{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"AAAA"}},{"type":"text","text":"q"}]}]`,
			[]string{"anthropic: the detail of an image was left out"}},
		"system messages": {func(r *llm.Request) {
			r.Messages = append([]llm.Message{{Role: llm.RoleSystem, Content: llm.Text("s1")}}, r.Messages[0],
				llm.Message{Role: llm.RoleSystem, Content: llm.Text("s2"), Name: "boss"})
		}, `"system":[{"type":"text","text":"s1"},{"type":"text","text":"s2"}],` + user,
			[]string{"anthropic: the names of authors were left out", "anthropic: a system message was moved to the front"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Provider{maxTokens: 77}
			sent, err := p.translate(question(c.edit))
			require.NoError(t, err)
			body, err := json.Marshal(sent)
			require.NoError(t, err)
			want := `{"model":"m",` + c.want + `}`
			if name != "default max_tokens" {
				want = `{"max_tokens":5,` + want[1:]
			}
			require.JSONEq(t, want, string(body))
			require.Equal(t, c.warnings, sent.warnings)
		})
	}
}

// TestTranslateHistory moves a conversation that was held elsewhere.
func TestTranslateHistory(t *testing.T) {
	text := llm.Text
	req := &llm.Request{Model: "m", MaxTokens: 5, Messages: []llm.Message{
		{Role: llm.RoleUser, Content: text("one")},
		{Role: llm.RoleUser, Content: append(text("two"), llm.Part{Type: llm.PartText})},
		{Role: llm.RoleAssistant, Content: text(""), ToolCalls: []llm.ToolCall{
			{ID: "functions.f:0", Name: "f", Arguments: `{"a":1}`}, {ID: "call-2", Name: "g"},
		}},
		{Role: llm.RoleTool, ToolCallID: "functions.f:0", Name: "f", Content: text("r1")},
		{Role: llm.RoleUser, Content: text("by the way")},
		{Role: llm.RoleTool, ToolCallID: "call-2", Content: llm.Content{image("data:image/png;base64,AA==")}},
		{Role: llm.RoleAssistant, Content: text("done")},
		{Role: llm.RoleAssistant},
	}}
	sent, err := (&Provider{}).translate(req)
	require.NoError(t, err)
	require.Empty(t, sent.warnings)
	body, err := json.Marshal(sent)
	require.NoError(t, err)
	foreign := sent.Messages[1].Content[0].ID
	require.Regexp(t, `^[A-Za-z0-9]{9}$`, foreign)
	require.JSONEq(t, `{"model":"m","max_tokens":5,"messages":[
		{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"`+foreign+`","name":"f","input":{"a":1}},
			{"type":"tool_use","id":"call-2","name":"g","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+foreign+`","content":[{"type":"text","text":"r1"}]},
			{"type":"tool_result","tool_use_id":"call-2","content":[{"type":"image","source":
				{"type":"base64","media_type":"image/png","data":"AA=="}}]},
			{"type":"text","text":"by the way"}]},
		{"role":"assistant","content":[{"type":"text","text":"done"}]}]}`, string(body))
}

func TestTranslateRefuses(t *testing.T) {
	for name, edit := range map[string]func(*llm.Request){
		"seed":           func(r *llm.Request) { r.Seed = new(int64(1)) },
		"blank stop":     func(r *llm.Request) { r.Stop = []string{"\n"} },
		"boolean schema": func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage("true")} },
		"odd image":      func(r *llm.Request) { r.Messages[0].Content = llm.Content{image("data:image/tiff;base64,AA==")} },
		"image as text":  func(r *llm.Request) { r.Messages[0].Content = llm.Content{image("data:image/png,AA")} },
		"system image": func(r *llm.Request) {
			r.Messages[0] = llm.Message{Role: llm.RoleSystem, Content: llm.Content{image("https://x.test")}}
		},
		"only a system":  func(r *llm.Request) { r.Messages[0].Role = llm.RoleSystem },
		"nothing to say": func(r *llm.Request) { r.Messages[0].Content = llm.Text("") },
		"image in results": func(r *llm.Request) {
			r.Messages[0] = llm.Message{Role: llm.RoleTool, ToolCallID: "1", Content: llm.Content{image("data:x")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(Config{BaseURL: "http://127.0.0.1:1"})
			require.NoError(t, err)
			_, err = p.Complete(t.Context(), question(edit))
			require.Equal(t, provider.DetailUnsupported, provider.AsFailure(err).Detail)
			for _, err = range p.Stream(t.Context(), question(edit)) {
				require.Equal(t, provider.DetailUnsupported, provider.AsFailure(err).Detail)
			}
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"scheme":         {BaseURL: "ftp://x.test"},
		"v1":             {BaseURL: "https://x.test/v1/"},
		"two keys":       {APIKey: "a", AuthToken: "b"},
		"key with break": {APIKey: "a\nb"},
		"max tokens":     {DefaultMaxTokens: -1},
		"timeout":        {ConnectTimeout: -1},
		"connections":    {MaxIdleConns: -1},
		"header":         {Headers: map[string][]string{"Idempotency-Key": {"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(cfg)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "a\nb")
		})
	}
	cfg := Config{AuthToken: "t", Betas: []string{"b1", "b2"}, Headers: map[string][]string{"x-team": {"red"}}}
	require.NoError(t, cfg.Validate())
	require.Equal(t, "Bearer t", cfg.header().Get("Authorization"))
	require.Equal(t, "b1,b2", cfg.header().Get("Anthropic-Beta"))
	require.Equal(t, "red", cfg.header().Get("X-Team"))
	require.False(t, cfg.Capabilities().Seed)
}
