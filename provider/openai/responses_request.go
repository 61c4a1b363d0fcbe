package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// responsesRequest is the body of a Responses call. Store is never left to its
// default, which keeps prompts at the provider.
type responsesRequest struct {
	Model             string      `json:"model"`
	Instructions      string      `json:"instructions,omitempty"`
	Input             []any       `json:"input"`
	Tools             []flatTool  `json:"tools,omitempty"`
	ToolChoice        any         `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool       `json:"parallel_tool_calls,omitempty"`
	Text              *textFormat `json:"text,omitempty"`
	MaxOutputTokens   int         `json:"max_output_tokens,omitempty"`
	Temperature       *float64    `json:"temperature,omitempty"`
	TopP              *float64    `json:"top_p,omitempty"`
	Stream            bool        `json:"stream,omitempty"`
	Store             bool        `json:"store"`
}

type flatTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"` // by default true here, and false in Chat Completions
}

type textFormat struct {
	Format struct {
		Type string `json:"type"`
		llm.JSONSchema
	} `json:"format"`
}

type inputMessage struct {
	Role    llm.Role `json:"role"`
	Content any      `json:"content"`
}

type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

type inputCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type inputResult struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

// responsesBody translates a request. What cannot be sent is refused, not
// dropped.
func (c *Config) responsesBody(_ []byte, req *llm.Request, stream bool) ([]byte, error) {
	switch {
	case len(req.Stop) > 0:
		return nil, wire.Unsupported("a stop sequence")
	case req.Seed != nil:
		return nil, wire.Unsupported("a seed")
	}
	schema, err := namedSchema(req.JSONSchema)
	if err != nil {
		return nil, err
	}
	instructions, rest := leadingSystem(req.Messages)
	input, err := c.input(rest)
	if err != nil {
		return nil, err
	}
	body := responsesRequest{
		Model: req.Model, Instructions: instructions, Input: input, MaxOutputTokens: req.MaxTokens,
		Temperature: req.Temperature, TopP: req.TopP, Stream: stream,
	}
	for _, t := range completeTools(req.Tools) {
		strict := t.Strict != nil && *t.Strict
		body.Tools = append(body.Tools, flatTool{"function", t.Name, t.Description, t.Parameters, strict})
	}
	if len(req.Tools) > 0 {
		body.ToolChoice, body.ParallelToolCalls = flatChoice(req.ToolChoice), req.ParallelToolCalls
	}
	if schema != nil {
		body.Text = new(textFormat)
		body.Text.Format.Type, body.Text.Format.JSONSchema = "json_schema", *schema
	}
	return encode(body)
}

// leadingSystem joins the system messages before the conversation.
func leadingSystem(messages []llm.Message) (string, []llm.Message) {
	var texts []string
	for i, m := range messages {
		if m.Role != llm.RoleSystem || len(m.Content.Text()) == 0 {
			return strings.Join(texts, "\n\n"), messages[i:]
		}
		texts = append(texts, m.Content.Text())
	}
	return "", messages // nothing but system messages: they are the input
}

func (c *Config) input(messages []llm.Message) ([]any, error) {
	items := make([]any, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		if err := imagesOnlyFromUsers(m); err != nil {
			return nil, err
		}
		if m.Role == llm.RoleTool {
			items = append(items, inputResult{"function_call_output", c.callID(m.ToolCallID), m.Content.Text()})
			continue
		}
		if len(m.Content) > 0 {
			items = append(items, inputMessage{m.Role, inputContent(m)})
		}
		for _, call := range m.ToolCalls {
			items = append(items, inputCall{"function_call", c.callID(call.ID), call.Name, cmp.Or(call.Arguments, "{}")})
		}
	}
	return items, nil
}

// inputContent is the text, or the parts where there is more.
func inputContent(m *llm.Message) any {
	if m.Role != llm.RoleUser || len(m.Content) == 1 && m.Content[0].Type == llm.PartText {
		return m.Content.Text()
	}
	parts := make([]inputPart, len(m.Content))
	for i, p := range m.Content {
		if p.Type == llm.PartImage {
			parts[i] = inputPart{Type: "input_image", ImageURL: p.Image.URL, Detail: cmp.Or(p.Image.Detail, "auto")}
			continue
		}
		parts[i] = inputPart{Type: "input_text", Text: p.Text}
	}
	return parts
}

func flatChoice(choice *llm.ToolChoice) any {
	if choice == nil {
		return nil
	}
	if choice.Mode != llm.ToolChoiceNamed {
		return choice.Mode
	}
	return map[string]string{"type": "function", "name": choice.Name}
}
