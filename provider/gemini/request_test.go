package gemini

import (
	"encoding/json"
	"testing"

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
	return llm.Content{{Type: llm.PartImage, Image: &llm.ImageURL{URL: url, Detail: "high"}}}
}

func choose(mode string) func(*llm.Request) {
	return func(r *llm.Request) {
		r.Tools, r.ToolChoice = []llm.Tool{{Name: "f"}}, &llm.ToolChoice{Mode: mode, Name: "f"}
	}
}

func TestTranslate(t *testing.T) {
	const (
		user = `"contents":[{"role":"user","parts":[{"text":"q"}]}]`
		tool = `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":`
	)
	for name, c := range map[string]struct {
		edit     func(*llm.Request)
		want     string
		warnings []string
	}{
		"plain": {func(*llm.Request) {}, user, nil},
		"sampling": {func(r *llm.Request) {
			r.MaxTokens, r.Temperature, r.TopP, r.Stop, r.Seed = 5, new(0.0), new(0.5), []string{"END"}, new(int64(7))
		}, user + `,"generationConfig":{"maxOutputTokens":5,"temperature":0,"topP":0.5,"stopSequences":["END"],"seed":7}`, nil},
		"auto":     {choose(llm.ToolChoiceAuto), user + tool + `{"mode":"AUTO"}}`, nil},
		"none":     {choose(llm.ToolChoiceNone), user + tool + `{"mode":"NONE"}}`, nil},
		"required": {choose(llm.ToolChoiceRequired), user + tool + `{"mode":"ANY"}}`, nil},
		"named":    {choose(llm.ToolChoiceNamed), user + tool + `{"mode":"ANY","allowedFunctionNames":["f"]}}`, nil},
		"tools": {func(r *llm.Request) {
			r.Tools = []llm.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`), Strict: new(true)}}
		}, user + `,"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object"}}]}]`,
			[]string{"gemini: the strict mark of a tool was left out"}},
		"schema": {func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`{"type":"string"}`)} },
			user + `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"string"}}`, nil},
		"any JSON": {func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`true`)} },
			user + `,"generationConfig":{"responseMimeType":"application/json"}`, nil},
		"image": {func(r *llm.Request) { r.Messages[0].Content = image("data:image/png;base64,AA==") },
			`"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}]`,
			[]string{"gemini: the detail of an image was left out"}},
		"system messages": {func(r *llm.Request) {
			r.Messages = append([]llm.Message{{Role: llm.RoleSystem, Content: llm.Text("s1")}}, r.Messages[0],
				llm.Message{Role: llm.RoleSystem, Content: llm.Text("s2"), Name: "boss"}, llm.Message{Role: llm.RoleSystem, Content: llm.Text("")})
		}, `"systemInstruction":{"parts":[{"text":"s1"},{"text":"s2"}]},` + user,
			[]string{"gemini: the names of authors were left out", "gemini: a system message was moved to the front"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := translate(question(c.edit))
			require.NoError(t, err)
			body, err := json.Marshal(r)
			require.NoError(t, err)
			require.JSONEq(t, `{`+c.want+`}`, string(body))
			require.Equal(t, c.warnings, r.warnings)
		})
	}
}

// TestTranslateHistory moves a conversation that was held elsewhere.
func TestTranslateHistory(t *testing.T) {
	text := llm.Text
	r, err := translate(&llm.Request{Messages: []llm.Message{
		{Role: llm.RoleUser, Content: text("one")},
		{Role: llm.RoleUser, Content: text("two")},
		{Role: llm.RoleAssistant, Content: text(""), ToolCalls: []llm.ToolCall{
			{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "f"}, {ID: "c", Name: "g"},
		}},
		{Role: llm.RoleTool, ToolCallID: "c", Content: text(`[1]`)},
		{Role: llm.RoleUser, Content: text("by the way")},
		{Role: llm.RoleTool, ToolCallID: "b", Content: text(`{"n":2}`)},
		{Role: llm.RoleTool, ToolCallID: "a", Name: "f", Content: text("one")},
		{Role: llm.RoleTool, ToolCallID: "lost", Name: "h", Content: text("")},
		{Role: llm.RoleAssistant, Content: text("done")},
		{Role: llm.RoleAssistant},
	}})
	require.NoError(t, err)
	body, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"contents":[
		{"role":"user","parts":[{"text":"one"},{"text":"two"}]},
		{"role":"model","parts":[
			{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"skip_thought_signature_validator"},
			{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},
			{"functionCall":{"name":"g","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},
		{"role":"user","parts":[
			{"functionResponse":{"name":"f","response":{"output":"one"}}},
			{"functionResponse":{"name":"f","response":{"n":2}}},
			{"functionResponse":{"name":"g","response":{"output":"[1]"}}},
			{"functionResponse":{"name":"h","response":{"output":""}}},
			{"text":"by the way"}]},
		{"role":"model","parts":[{"text":"done"}]}]}`, string(body))
	require.Empty(t, r.warnings)
}

func TestTranslateRefuses(t *testing.T) {
	tool := func(c llm.Content) func(*llm.Request) {
		return func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Message{Role: llm.RoleTool, Name: "f", ToolCallID: "1", Content: c})
		}
	}
	for name, edit := range map[string]func(*llm.Request){
		"serial calls":        func(r *llm.Request) { r.Tools, r.ParallelToolCalls = []llm.Tool{{Name: "f"}}, new(false) },
		"large seed":          func(r *llm.Request) { r.Seed = new(int64(1 << 40)) },
		"impossible schema":   func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage("false")} },
		"image by URL":        func(r *llm.Request) { r.Messages[0].Content = image("https://x.test/a.png") },
		"odd image":           func(r *llm.Request) { r.Messages[0].Content = image("data:image/gif;base64,AA==") },
		"image in a result":   tool(image("data:image/png;base64,AA==")),
		"result without call": func(r *llm.Request) { r.Messages[0] = llm.Message{Role: llm.RoleTool, ToolCallID: "1"} },
		"system image": func(r *llm.Request) {
			r.Messages[0] = llm.Message{Role: llm.RoleSystem, Content: image("data:image/png;base64,AA==")}
		},
		"only a system": func(r *llm.Request) { r.Messages[0].Role = llm.RoleSystem },
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
		"scheme":        {BaseURL: "ftp://x.test"},
		"version":       {BaseURL: "https://x.test/v1beta"},
		"relative path": {ModelsPath: "v1/models"},
		"path with end": {ModelsPath: "/v1/models/"},
		"path with key": {ModelsPath: "/v1/models?key=x"},
		"two keys":      {APIKey: "a", AuthToken: "b"},
		"key":           {APIKey: "a\nb"},
		"timeout":       {ConnectTimeout: -1},
		"connections":   {MaxIdleConns: -1},
		"header":        {Headers: map[string][]string{"Accept": {"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(cfg)
			require.Error(t, err)
		})
	}
	cfg := Config{AuthToken: "t", ModelsPath: "/v1/projects/p/locations/l/publishers/google/models", Headers: map[string][]string{"x-team": {"red"}}}
	require.NoError(t, cfg.Validate())
	require.Equal(t, "Bearer t", cfg.header().Get("Authorization"))
	require.Equal(t, "red", cfg.header().Get("X-Team"))
	require.False(t, cfg.Capabilities().ImageURLs)
}
