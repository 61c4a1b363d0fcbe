package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MarshalJSON gives a string where there is one text part, otherwise the list.
func (c Content) MarshalJSON() ([]byte, error) {
	switch {
	case c == nil:
		return []byte("null"), nil
	case len(c) == 1 && c[0].Type == PartText:
		return json.Marshal(c[0].Text)
	}
	return json.Marshal([]Part(c))
}

// UnmarshalJSON takes a string, a list of parts, or null.
func (c *Content) UnmarshalJSON(data []byte) error {
	switch first(data) {
	case '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*c = Text(s)
		return nil
	case '[':
		return json.Unmarshal(data, (*[]Part)(c))
	case 'n':
		*c = nil
		return nil
	}
	return errors.New("content must be a string or a list of parts")
}

// function is the OpenAI envelope of tools, calls and choices.
type function[T any] struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function T      `json:"function"`
}

type calledFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// MarshalJSON gives the OpenAI shape.
func (t ToolCall) MarshalJSON() ([]byte, error) {
	return json.Marshal(function[calledFunction]{t.ID, "function", calledFunction{t.Name, t.Arguments}})
}

// UnmarshalJSON takes the OpenAI shape.
func (t *ToolCall) UnmarshalJSON(data []byte) error {
	var w function[calledFunction]
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if w.Type != "" && w.Type != "function" {
		return fmt.Errorf("type must be \"function\"")
	}
	*t = ToolCall{w.ID, w.Function.Name, w.Function.Arguments}
	return nil
}

type plainTool Tool

// MarshalJSON gives the OpenAI shape, {"type": "function", "function": {…}}.
func (t Tool) MarshalJSON() ([]byte, error) {
	return json.Marshal(function[plainTool]{Type: "function", Function: plainTool(t)})
}

// UnmarshalJSON takes the OpenAI shape.
func (t *Tool) UnmarshalJSON(data []byte) error {
	var w function[plainTool]
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if w.Type != "function" {
		return fmt.Errorf("type must be \"function\"")
	}
	*t = Tool(w.Function)
	if string(t.Parameters) == "null" {
		t.Parameters = nil
	}
	return nil
}

type namedFunction struct {
	Name string `json:"name"`
}

// MarshalJSON gives the mode as a string, or the OpenAI object for a named
// tool.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Mode != ToolChoiceNamed {
		return json.Marshal(c.Mode)
	}
	return json.Marshal(function[namedFunction]{Type: "function", Function: namedFunction{c.Name}})
}

// UnmarshalJSON takes auto, none, required or the OpenAI object.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	if first(data) == '"' {
		*c = ToolChoice{}
		return json.Unmarshal(data, &c.Mode)
	}
	var w function[namedFunction]
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = ToolChoice{w.Type, w.Function.Name}
	return nil
}

type plainSchema JSONSchema

// UnmarshalJSON takes either {"name", "schema", "strict"}, as OpenAI's
// response_format does, or the bare schema.
func (s *JSONSchema) UnmarshalJSON(data []byte) error {
	var keys map[string]json.RawMessage
	if first(data) == '{' {
		if err := json.Unmarshal(data, &keys); err != nil {
			return err
		}
	}
	inner := first(keys["schema"])
	if inner != '{' && inner != 't' && inner != 'f' {
		*s = JSONSchema{Schema: bytes.Clone(data)}
		return nil
	}
	return json.Unmarshal(data, (*plainSchema)(s))
}

// first returns the first byte that is not white space, or 0.
func first(data []byte) byte {
	if data = bytes.TrimLeft(data, " \t\r\n"); len(data) > 0 {
		return data[0]
	}
	return 0
}
