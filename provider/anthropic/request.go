package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// request is the body of a call.
type request struct {
	Model         string        `json:"model"`
	MaxTokens     int           `json:"max_tokens"`
	System        []block       `json:"system,omitempty"`
	Messages      []message     `json:"messages"`
	Tools         []tool        `json:"tools,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Stream        bool          `json:"stream,omitempty"`

	warnings []string
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      *bool           `json:"strict,omitempty"`
}

type toolChoice struct {
	Type                   string `json:"type"`
	Name                   string `json:"name,omitempty"`
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use,omitempty"`
}

type outputConfig struct {
	Format outputFormat `json:"format"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

func (r *request) warn(text string) { r.warnings = append(r.warnings, "anthropic: "+text) }

// translate makes the body of a call, or an Unsupported failure.
func (p *Provider) translate(req *llm.Request) (*request, error) {
	r := &request{Model: req.Model, MaxTokens: cmp.Or(req.MaxTokens, p.maxTokens), TopP: req.TopP}
	for _, step := range []func(*llm.Request) error{r.setMessages, r.setTools, r.setSchema, r.setSampling} {
		if err := step(req); err != nil {
			return nil, err
		}
	}
	return r, nil
}

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

func (r *request) setTools(req *llm.Request) error {
	for _, t := range req.Tools {
		schema := t.Parameters
		if len(schema) == 0 {
			schema = noParameters
		}
		r.Tools = append(r.Tools, tool{t.Name, t.Description, schema, t.Strict})
	}
	if len(r.Tools) == 0 {
		return nil
	}
	serial := req.ParallelToolCalls != nil && !*req.ParallelToolCalls
	if req.ToolChoice == nil && !serial {
		return nil
	}
	choice := toolChoice{Type: "auto", DisableParallelToolUse: serial}
	if req.ToolChoice != nil {
		switch req.ToolChoice.Mode {
		case llm.ToolChoiceNone:
			choice = toolChoice{Type: "none"}
		case llm.ToolChoiceRequired:
			choice.Type = "any"
		case llm.ToolChoiceNamed:
			choice.Type, choice.Name = "tool", req.ToolChoice.Name
		}
	}
	r.ToolChoice = &choice
	return nil
}

func (r *request) setSchema(req *llm.Request) error {
	if req.JSONSchema == nil {
		return nil
	}
	if schema := bytes.TrimSpace(req.JSONSchema.Schema); len(schema) == 0 || schema[0] != '{' {
		return wire.Unsupported("a schema that is not an object")
	}
	r.OutputConfig = &outputConfig{outputFormat{Type: "json_schema", Schema: req.JSONSchema.Schema}}
	return nil
}

// setSampling lowers the temperature to the API's range of 0 to 1, since 1 is
// the nearest that can be had.
func (r *request) setSampling(req *llm.Request) error {
	if req.Seed != nil {
		return wire.Unsupported("a seed")
	}
	for _, stop := range req.Stop {
		if strings.TrimSpace(stop) == "" {
			return wire.Unsupported("a stop sequence of white space")
		}
	}
	r.StopSequences = req.Stop
	r.Temperature = req.Temperature
	if r.Temperature != nil && *r.Temperature > 1 {
		r.Temperature = new(1.0)
		r.warn("temperature was lowered to 1")
	}
	return nil
}
