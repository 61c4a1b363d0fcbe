package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Roles of the API. Tool results are the user's.
const (
	roleUser  = "user"
	roleModel = "model"
)

// foreignThought stands for the signature of a thought that is not to be had.
// See https://ai.google.dev/gemini-api/docs/thought-signatures.
const foreignThought = "skip_thought_signature_validator"

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part has one of its fields, and a call its signature.
type part struct {
	Text             string            `json:"text,omitempty"`
	InlineData       *inlineData       `json:"inlineData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

type inlineData struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

// functionCall goes without an id, which not every version of the API takes:
// results are joined to calls by their order.
type functionCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"` // an object

	turn int // of its call among those of the conversation; for the order
}

// knownCall is a call that a result may belong to.
type knownCall struct {
	name string
	turn int
}

func (r *request) setMessages(req *llm.Request) error {
	calls := map[string]knownCall{}
	for i := range req.Messages {
		if err := r.addMessage(&req.Messages[i], calls); err != nil {
			return err
		}
	}
	if len(r.Contents) == 0 {
		return wire.Unsupported("a conversation without a message of the user")
	}
	for _, c := range r.Contents {
		slices.SortStableFunc(c.Parts, func(a, b part) int { return cmp.Compare(rank(a), rank(b)) })
	}
	return nil
}

// rank puts tool results first and in the order of their calls.
func rank(p part) int {
	if p.FunctionResponse != nil {
		return p.FunctionResponse.turn
	}
	return math.MaxInt32
}

func (r *request) addMessage(m *llm.Message, calls map[string]knownCall) error {
	if m.Name != "" && m.Role != llm.RoleTool {
		r.warn("the names of authors were left out")
	}
	if m.Role == llm.RoleTool {
		return r.addResult(m, calls)
	}
	parts, err := r.parts(m)
	if err != nil {
		return err
	}
	switch m.Role {
	case llm.RoleSystem:
		r.addSystem(parts)
	case llm.RoleAssistant:
		for _, c := range m.ToolCalls {
			calls[c.ID] = knownCall{c.Name, len(calls)}
			call := &functionCall{c.Name, json.RawMessage(c.Arguments)}
			if c.Arguments == "" {
				call.Args = json.RawMessage("{}")
			}
			parts = append(parts, part{FunctionCall: call, ThoughtSignature: foreignThought})
		}
		r.add(roleModel, parts)
	default:
		r.add(roleUser, parts)
	}
	return nil
}

// addSystem moves a system message to the one place that the API has for them.
func (r *request) addSystem(parts []part) {
	if len(parts) == 0 {
		return
	}
	if len(r.Contents) > 0 {
		r.warn("a system message was moved to the front")
	}
	if r.SystemInstruction == nil {
		r.SystemInstruction = new(content)
	}
	r.SystemInstruction.Parts = append(r.SystemInstruction.Parts, parts...)
}

// add merges messages of one role in a row, which the API wants to alternate.
func (r *request) add(role string, parts []part) {
	if last := len(r.Contents) - 1; last >= 0 && r.Contents[last].Role == role {
		r.Contents[last].Parts = append(r.Contents[last].Parts, parts...)
		return
	}
	if len(parts) > 0 {
		r.Contents = append(r.Contents, content{role, parts})
	}
}

// addResult adds a tool's result, under the name of the tool that was called.
func (r *request) addResult(m *llm.Message, calls map[string]knownCall) error {
	call, known := calls[m.ToolCallID]
	if !known {
		call = knownCall{m.Name, len(calls)}
	}
	if call.name == "" {
		return wire.Unsupported("a tool result without its call")
	}
	for i := range m.Content {
		if m.Content[i].Type == llm.PartImage {
			return wire.Unsupported("an image in a tool result")
		}
	}
	result := &functionResponse{Name: call.name, Response: resultObject(m.Content.Text()), turn: call.turn}
	r.add(roleUser, []part{{FunctionResponse: result}})
	return nil
}

// resultObject is a tool's result as the object that the API demands. What is
// none goes under the name that the API reads a plain output from.
func resultObject(text string) json.RawMessage {
	data := bytes.TrimSpace([]byte(text))
	if len(data) > 0 && data[0] == '{' && json.Valid(data) {
		return data
	}
	wrapped, _ := json.Marshal(map[string]string{"output": text}) // text always marshals
	return wrapped
}

// imageTypes are those that the API lists.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}

// parts translates content. Empty text, which says nothing, is left out.
func (r *request) parts(m *llm.Message) ([]part, error) {
	parts := make([]part, 0, len(m.Content)+len(m.ToolCalls))
	for i := range m.Content {
		p := &m.Content[i]
		switch {
		case p.Type != llm.PartImage && p.Text != "":
			parts = append(parts, part{Text: p.Text})
		case p.Type != llm.PartImage:
		case m.Role != llm.RoleUser:
			return nil, wire.Unsupported("an image in a message that is not the user's")
		default:
			image, err := r.image(p.Image)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{InlineData: image})
		}
	}
	return parts, nil
}

func (r *request) image(image *llm.ImageURL) (*inlineData, error) {
	if image.Detail != "" && image.Detail != "auto" {
		r.warn("the detail of an image was left out")
	}
	mediaType, data, ok := image.Data()
	if !ok {
		return nil, wire.Unsupported("an image by URL")
	}
	if !slices.Contains(imageTypes, mediaType) {
		return nil, wire.Unsupported("an image that is no PNG, JPEG, WebP or HEIC")
	}
	return &inlineData{mediaType, data}, nil
}
