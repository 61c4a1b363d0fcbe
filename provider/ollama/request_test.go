package ollama

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/stretchr/testify/require"
)

func question(edit func(*llm.Request)) *llm.Request {
	req := &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("q")}}}
	edit(req)
	return req
}

func image(url string) llm.Content {
	return llm.Content{{Type: llm.PartText, Text: "q"}, {Type: llm.PartImage, Image: &llm.ImageURL{URL: url, Detail: "high"}}}
}

func TestTranslate(t *testing.T) {
	const (
		user = `"messages":[{"role":"user","content":"q"}]`
		tool = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
	)
	offer := func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "f", Strict: new(true)}} }
	for name, c := range map[string]struct {
		edit     func(*llm.Request)
		want     string
		warnings []string
	}{
		"plain": {func(*llm.Request) {}, user, nil},
		"options": {func(r *llm.Request) {
			r.MaxTokens, r.Temperature, r.TopP, r.Stop, r.Seed = 5, new(0.0), new(0.5), []string{"END"}, new(int64(7))
		}, user + `,"options":{"num_predict":5,"temperature":0,"top_p":0.5,"stop":["END"],"seed":7}`, nil},
		"tools": {offer, user + "," + tool, []string{"ollama: the strict mark of a tool was left out"}},
		"tools, none to be called": {func(r *llm.Request) {
			offer(r)
			r.ToolChoice, r.ParallelToolCalls = &llm.ToolChoice{Mode: llm.ToolChoiceNone}, new(false)
		}, user, nil},
		"tools, as it likes": {func(r *llm.Request) {
			r.Tools = []llm.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}
			r.ToolChoice, r.ParallelToolCalls = &llm.ToolChoice{Mode: llm.ToolChoiceAuto}, new(true)
		}, user + "," + tool, nil},
		"schema":   {func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`{"type":"string"}`)} }, user + `,"format":{"type":"string"}`, nil},
		"any JSON": {func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`true`)} }, user + `,"format":"json"`, nil},
		"image": {func(r *llm.Request) { r.Messages[0].Content = image("data:image/png;base64,AA==") },
			`"messages":[{"role":"user","content":"q","images":["AA=="]}]`, []string{"ollama: the detail of an image was left out"}},
		"history": {func(r *llm.Request) {
			r.Messages = append(r.Messages,
				llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: `{"a":1}`}, {ID: "2", Name: "g"}}},
				llm.Message{Role: llm.RoleTool, ToolCallID: "2", Content: llm.Text("r2")},
				llm.Message{Role: llm.RoleTool, ToolCallID: "1", Name: "f", Content: llm.Text("r1")},
				llm.Message{Role: llm.RoleUser, Name: "ann", Content: llm.Text("so?")})
		}, `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[
			{"id":"1","function":{"name":"f","arguments":{"a":1}}},{"id":"2","function":{"index":1,"name":"g","arguments":{}}}]},
			{"role":"tool","content":"r2","tool_name":"g","tool_call_id":"2"},
			{"role":"tool","content":"r1","tool_name":"f","tool_call_id":"1"},
			{"role":"user","content":"so?"}]`, []string{"ollama: the names of authors were left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := (&Provider{}).translate(question(c.edit))
			require.NoError(t, err)
			body, err := json.Marshal(r)
			require.NoError(t, err)
			require.JSONEq(t, `{"model":"m","stream":false,"truncate":false,"shift":false,`+c.want+`}`, string(body))
			require.Equal(t, c.warnings, r.warnings)
		})
	}
}

func TestSettingsAreSent(t *testing.T) {
	for keep, want := range map[time.Duration]any{0: nil, -1: -1, 90 * time.Second: "1m30s"} {
		p, err := New(Config{ContextTokens: 8192, KeepAlive: keep, APIKey: "k"})
		require.NoError(t, err)
		require.Equal(t, "http://127.0.0.1:11434/api/chat", p.url)
		r, err := p.translate(question(func(*llm.Request) {}))
		require.NoError(t, err)
		require.Equal(t, want, r.KeepAlive)
		require.Equal(t, 8192, r.Options.NumCtx)
	}
}

func TestTranslateRefuses(t *testing.T) {
	offer := func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "f"}} }
	for name, edit := range map[string]func(*llm.Request){
		"forced call":       func(r *llm.Request) { offer(r); r.ToolChoice = &llm.ToolChoice{Mode: llm.ToolChoiceRequired} },
		"named call":        func(r *llm.Request) { offer(r); r.ToolChoice = &llm.ToolChoice{Mode: llm.ToolChoiceNamed, Name: "f"} },
		"serial calls":      func(r *llm.Request) { offer(r); r.ParallelToolCalls = new(false) },
		"impossible schema": func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage("false")} },
		"image by URL":      func(r *llm.Request) { r.Messages[0].Content = image("https://x.test/a.png") },
		"system image": func(r *llm.Request) {
			r.Messages[0] = llm.Message{Role: llm.RoleSystem, Content: image("data:image/png;base64,AA==")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(Config{BaseURL: "http://127.0.0.1:1"})
			require.NoError(t, err)
			_, err = p.Complete(t.Context(), question(edit))
			require.Equal(t, provider.DetailUnsupported, provider.AsFailure(err).Detail)
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"scheme":      {BaseURL: "x.test:11434"},
		"path":        {BaseURL: "http://x.test/api"},
		"openai path": {BaseURL: "http://x.test/v1"},
		"context":     {ContextTokens: -1},
		"key":         {APIKey: "a\nb"},
		"timeout":     {ConnectTimeout: -1},
		"connections": {MaxIdleConns: -1},
		"header":      {Headers: map[string][]string{"Host": {"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(cfg)
			require.Error(t, err)
		})
	}
	cfg := Config{APIKey: "k", Headers: map[string][]string{"x-team": {"red"}}}
	require.Equal(t, "Bearer k", cfg.header().Get("Authorization"))
	require.Equal(t, "red", cfg.header().Get("X-Team"))
	require.False(t, cfg.Capabilities().Tools, "that depends on the model")
}
