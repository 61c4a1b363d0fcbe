package ollama

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// request is the body of a call. Stream is always sent, since the API streams
// when it is absent. Truncate and Shift are sent as false, so that nothing is cut
// out of a conversation in silence.
type request struct {
	Model     string          `json:"model"`
	Messages  []message       `json:"messages"`
	Tools     []llm.Tool      `json:"tools,omitempty"` // the OpenAI shape, as it is here
	Format    json.RawMessage `json:"format,omitempty"`
	Options   options         `json:"options,omitzero"`
	KeepAlive any             `json:"keep_alive,omitempty"`
	Stream    bool            `json:"stream"`
	Truncate  bool            `json:"truncate"`
	Shift     bool            `json:"shift"`

	warnings []string
}

type options struct {
	NumCtx      int      `json:"num_ctx,omitempty"`
	NumPredict  int      `json:"num_predict,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
}

type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	Images     []string   `json:"images,omitempty"` // bare base64
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolName   string     `json:"tool_name,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Index     int             `json:"index,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object; a string is refused
}

func (r *request) warn(text string) { r.warnings = append(r.warnings, "ollama: "+text) }

// translate makes the body of a call, or an Unsupported failure.
func (p *Provider) translate(req *llm.Request) (*request, error) {
	r := &request{Model: req.Model, Options: options{
		NumCtx: p.context, NumPredict: req.MaxTokens, Temperature: req.Temperature, TopP: req.TopP,
		Stop: req.Stop, Seed: req.Seed,
	}}
	switch {
	case p.keepAlive > 0:
		r.KeepAlive = p.keepAlive.Round(time.Millisecond).String()
	case p.keepAlive < 0:
		r.KeepAlive = -1
	}
	for _, step := range []func(*llm.Request) error{r.setMessages, r.setTools, r.setSchema} {
		if err := step(req); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *request) setTools(req *llm.Request) error {
	choice := req.ToolChoice
	switch {
	case len(req.Tools) == 0, choice != nil && choice.Mode == llm.ToolChoiceNone:
		return nil
	case choice != nil && choice.Mode != llm.ToolChoiceAuto:
		return wire.Unsupported("a tool choice that forces a call")
	case req.ParallelToolCalls != nil && !*req.ParallelToolCalls:
		return wire.Unsupported("parallel_tool_calls false")
	}
	for _, t := range req.Tools {
		if t.Strict != nil && *t.Strict {
			r.warn("the strict mark of a tool was left out")
		}
		if len(t.Parameters) == 0 {
			t.Parameters = noParameters
		}
		t.Strict = nil
		r.Tools = append(r.Tools, t)
	}
	return nil
}

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// setSchema constrains the output. The schema true allows any JSON, for which
// there is a word of its own.
func (r *request) setSchema(req *llm.Request) error {
	if req.JSONSchema == nil {
		return nil
	}
	switch schema := bytes.TrimSpace(req.JSONSchema.Schema); {
	case len(schema) > 0 && schema[0] == '{':
		r.Format = req.JSONSchema.Schema
	case string(schema) == "true":
		r.Format = json.RawMessage(`"json"`)
	default:
		return wire.Unsupported("a schema that allows nothing")
	}
	return nil
}

func (r *request) setMessages(req *llm.Request) error {
	names := map[string]string{} // of the tools, by call
	for i := range req.Messages {
		m := &req.Messages[i]
		out := message{Role: string(m.Role), Content: m.Content.Text(), ToolCallID: m.ToolCallID}
		var err error
		if out.Images, err = r.images(m); err != nil {
			return err
		}
		for n, c := range m.ToolCalls {
			names[c.ID] = c.Name
			out.ToolCalls = append(out.ToolCalls, toolCall{c.ID, function{n, c.Name, arguments(c.Arguments)}})
		}
		if m.Role == llm.RoleTool {
			if out.ToolName = m.Name; out.ToolName == "" {
				out.ToolName = names[m.ToolCallID]
			}
		} else if m.Name != "" {
			r.warn("the names of authors were left out")
		}
		r.Messages = append(r.Messages, out)
	}
	return nil
}

func arguments(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(text)
}

func (r *request) images(m *llm.Message) (images []string, err error) {
	for i := range m.Content {
		image := m.Content[i].Image
		if m.Content[i].Type != llm.PartImage {
			continue
		}
		if m.Role != llm.RoleUser {
			return nil, wire.Unsupported("an image in a message that is not the user's")
		}
		_, data, ok := image.Data()
		if !ok {
			return nil, wire.Unsupported("an image by URL")
		}
		if image.Detail != "" && image.Detail != "auto" {
			r.warn("the detail of an image was left out")
		}
		images = append(images, data)
	}
	return images, nil
}
