package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/llmbus/llmbus/llm"
)

// Request is the neutral request of the case format, which is older than the
// wire format.
type Request struct {
	Messages          []message       `json:"messages"`
	Tools             []plainTool     `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	JSONSchema        *llm.JSONSchema `json:"json_schema"`
	MaxTokens         int             `json:"max_tokens"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	Stop              []string        `json:"stop"`
	Seed              *int64          `json:"seed"`
	Interactive       bool            `json:"interactive"`
	CancelAfterMS     int64           `json:"client_cancel_after_ms"`
}

type plainTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

type message struct {
	Role       llm.Role        `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
}

// LLM is the request as the chain would hand it to an adapter.
func (v *Vector) LLM() (*llm.Request, error) {
	r := &v.Request
	out := &llm.Request{
		ID: "req-" + v.Name, Feature: "vectors", Model: v.Target.Model, Stream: v.Stream,
		ParallelToolCalls: r.ParallelToolCalls, JSONSchema: r.JSONSchema, MaxTokens: r.MaxTokens,
		Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop, Seed: r.Seed, Class: llm.ClassBackground,
	}
	if out.Model == "" {
		out.Model = "test-1"
	}
	if r.Interactive {
		out.Class = llm.ClassInteractive
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Strict: t.Strict})
	}
	choice, err := toolChoice(r.ToolChoice)
	if err != nil {
		return nil, err
	}
	out.ToolChoice = choice
	for i := range r.Messages {
		m, err := r.Messages[i].llm()
		if err != nil {
			return nil, err
		}
		out.Messages = append(out.Messages, m)
	}
	return out, out.Validate()
}

func toolChoice(raw json.RawMessage) (*llm.ToolChoice, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	choice := new(llm.ToolChoice)
	if raw[0] == '"' {
		return choice, json.Unmarshal(raw, &choice.Mode)
	}
	choice.Mode = llm.ToolChoiceNamed
	named := struct {
		Name *string `json:"name"`
	}{&choice.Name}
	return choice, json.Unmarshal(raw, &named)
}

func (m *message) llm() (llm.Message, error) {
	out := llm.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		var args bytes.Buffer
		if err := json.Compact(&args, c.Arguments); err != nil {
			return out, err
		}
		out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: args.String()})
	}
	var s string
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return out, nil
	}
	if json.Unmarshal(m.Content, &s) == nil {
		out.Content = llm.Text(s)
		return out, nil
	}
	var parts []struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return out, err
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			out.Content = append(out.Content, llm.Part{Type: llm.PartText, Text: p.Text})
		case "image":
			url := "data:" + p.MediaType + ";base64," + p.Data
			out.Content = append(out.Content, llm.Part{Type: llm.PartImage, Image: &llm.ImageURL{URL: url}})
		default:
			return out, fmt.Errorf("unknown part type %q", p.Type)
		}
	}
	return out, nil
}

// Ask makes the request of a case one user message.
func (v *Vector) Ask(text string) error {
	content, err := json.Marshal(text)
	v.Request.Messages = []message{{Role: llm.RoleUser, Content: content}}
	return err
}
