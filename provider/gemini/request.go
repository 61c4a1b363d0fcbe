package gemini

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// request is the body of a call. The model is in the URL.
type request struct {
	SystemInstruction *content         `json:"systemInstruction,omitempty"`
	Contents          []content        `json:"contents"`
	Tools             []tools          `json:"tools,omitempty"`
	ToolConfig        *toolConfig      `json:"toolConfig,omitempty"`
	GenerationConfig  generationConfig `json:"generationConfig,omitzero"`

	warnings []string
}

type tools struct {
	FunctionDeclarations []declaration `json:"functionDeclarations"`
}

// declaration has its schema in the field that takes plain JSON Schema; the
// older parameters takes a subset only.
type declaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description,omitempty"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	FunctionCallingConfig callingConfig `json:"functionCallingConfig"`
}

type callingConfig struct {
	Mode                 string   `json:"mode"`
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

type generationConfig struct {
	MaxOutputTokens    int             `json:"maxOutputTokens,omitempty"`
	Temperature        *float64        `json:"temperature,omitempty"`
	TopP               *float64        `json:"topP,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	Seed               *int64          `json:"seed,omitempty"`
	ResponseMIMEType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
}

func (r *request) warn(text string) { r.warnings = append(r.warnings, "gemini: "+text) }

// translate makes the body of a call, or an Unsupported failure.
func translate(req *llm.Request) (*request, error) {
	r := &request{GenerationConfig: generationConfig{
		MaxOutputTokens: req.MaxTokens, Temperature: req.Temperature, TopP: req.TopP,
		StopSequences: req.Stop, Seed: req.Seed,
	}}
	if req.Seed != nil && (*req.Seed < math.MinInt32 || *req.Seed > math.MaxInt32) {
		return nil, wire.Unsupported("a seed of more than 32 bits")
	}
	for _, step := range []func(*llm.Request) error{r.setMessages, r.setTools, r.setSchema} {
		if err := step(req); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *request) setTools(req *llm.Request) error {
	if len(req.Tools) == 0 {
		return nil
	}
	none := req.ToolChoice != nil && req.ToolChoice.Mode == llm.ToolChoiceNone
	if req.ParallelToolCalls != nil && !*req.ParallelToolCalls && !none {
		return wire.Unsupported("parallel_tool_calls false")
	}
	var offered tools
	for _, t := range req.Tools {
		if t.Strict != nil && *t.Strict {
			r.warn("the strict mark of a tool was left out")
		}
		offered.FunctionDeclarations = append(offered.FunctionDeclarations, declaration{t.Name, t.Description, t.Parameters})
	}
	r.Tools = []tools{offered}
	if req.ToolChoice == nil {
		return nil
	}
	calling := callingConfig{Mode: "AUTO"}
	switch req.ToolChoice.Mode {
	case llm.ToolChoiceNone:
		calling.Mode = "NONE"
	case llm.ToolChoiceRequired:
		calling.Mode = "ANY"
	case llm.ToolChoiceNamed:
		calling = callingConfig{"ANY", []string{req.ToolChoice.Name}}
	}
	r.ToolConfig = &toolConfig{calling}
	return nil
}

// setSchema constrains the output. The schema true allows any JSON, which the
// media type alone says.
func (r *request) setSchema(req *llm.Request) error {
	if req.JSONSchema == nil {
		return nil
	}
	switch schema := bytes.TrimSpace(req.JSONSchema.Schema); {
	case len(schema) > 0 && schema[0] == '{':
		r.GenerationConfig.ResponseJSONSchema = req.JSONSchema.Schema
	case string(schema) != "true":
		return wire.Unsupported("a schema that allows nothing")
	}
	r.GenerationConfig.ResponseMIMEType = "application/json"
	return nil
}
