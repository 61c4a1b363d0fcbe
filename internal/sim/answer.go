package sim

import (
	"encoding/json"
	"slices"
	"strings"
)

// call is what the simulator reads of a request.
type call struct {
	model  string
	stream bool
	input  int             // tokens, at four bytes each
	tools  []string        // names
	schema json.RawMessage // nil: none
}

// answer is what will be sent, in pieces of a token each.
type answer struct {
	model  string
	pieces []piece
	input  int
}

// piece is some text, or a whole tool call.
type piece struct {
	text string
	tool string // name; the arguments are always {}
}

// words make up every answer, over and over.
var words = strings.Fields("This is a simulated answer from a provider that does as its model name says;" +
	" every word of it was known before you asked, and nothing of what you asked is in it.")

func newAnswer(c call, fault Fault) answer {
	a := answer{model: c.model, input: c.input}
	switch {
	case fault.Kind == Empty:
	case fault.Kind == Tools && len(c.tools) > 0:
		a.pieces = []piece{{tool: c.tools[0]}}
	case fault.Kind == JSON, c.schema != nil && fault.Kind != Prose:
		a.pieces = jsonPieces(c.schema)
	default:
		a.pieces = make([]piece, fault.Tokens)
		for i := range a.pieces {
			a.pieces[i].text = words[i%len(words)]
			if i > 0 {
				a.pieces[i].text = " " + a.pieces[i].text
			}
		}
	}
	return a
}

// jsonPieces cuts a value that fits the schema, as a model's tokens would.
func jsonPieces(schema json.RawMessage) []piece {
	text, _ := json.Marshal(sample(schema, 0)) // made of maps, slices and scalars
	var pieces []piece
	for part := range slices.Chunk(text, 4) {
		pieces = append(pieces, piece{text: string(part)})
	}
	return pieces
}

// text is the whole visible answer.
func (a answer) text() string {
	var b strings.Builder
	for _, p := range a.pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// tool is the name of the tool that the answer calls, if it does.
func (a answer) tool() string {
	if len(a.pieces) == 1 {
		return a.pieces[0].tool
	}
	return ""
}

func (a answer) output() int { return max(1, len(a.pieces)) }

// maxSample bounds the nesting of a sample.
const maxSample = 16

// sample makes the smallest plain value that fits a schema: enough for type,
// properties, required, items, enum and const. Anything else may not fit.
func sample(schema json.RawMessage, depth int) any {
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		MinItems   int                        `json:"minItems"`
		Minimum    json.Number                `json:"minimum"`
		Enum       []json.RawMessage          `json:"enum"`
		Const      json.RawMessage            `json:"const"`
	}
	if json.Unmarshal(schema, &s) != nil || depth > maxSample {
		return map[string]any{"answer": "simulated"}
	}
	if kinds, ok := s.Type.([]any); ok && len(kinds) > 0 {
		s.Type = kinds[0]
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	switch s.Type {
	case "string":
		return "simulated"
	case "integer", "number":
		if s.Minimum != "" {
			return s.Minimum
		}
		return 1
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		list := []any{}
		for range min(s.MinItems, maxSample) {
			list = append(list, sample(s.Items, depth+1))
		}
		return list
	}
	object := map[string]any{}
	for name, property := range s.Properties {
		object[name] = sample(property, depth+1)
	}
	for _, name := range s.Required {
		if _, done := object[name]; !done {
			object[name] = "simulated"
		}
	}
	return object
}
