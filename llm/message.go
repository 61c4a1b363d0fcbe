package llm

import (
	"log/slog"
	"strings"
)

// Role of a message's author.
type Role string

const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the result of a tool call
)

// Message is one turn of the conversation, in the shape of an OpenAI chat
// message.
type Message struct {
	Role       Role       `json:"role"`
	Content    Content    `json:"content,omitempty"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // assistant only
	ToolCallID string     `json:"tool_call_id,omitempty"` // tool only
}

// LogValue keeps prompts out of logs.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("role", string(m.Role)), slog.Int("parts", len(m.Content)))
}

// Content is what a message says: on the wire a string, or a list of parts.
type Content []Part

// Text makes a Content of one text part.
func Text(s string) Content { return Content{{Type: PartText, Text: s}} }

// Text joins the text parts, in order and with nothing between them.
func (c Content) Text() string {
	if len(c) == 1 {
		return c[0].Text
	}
	var b strings.Builder
	for _, p := range c {
		b.WriteString(p.Text)
	}
	return b.String()
}

// LogValue keeps prompts out of logs.
func (c Content) LogValue() slog.Value { return slog.IntValue(len(c)) }

// PartType is the kind of a content part.
type PartType string

const (
	PartText  PartType = "text"
	PartImage PartType = "image_url"
)

// Part is a piece of a message.
type Part struct {
	Type  PartType  `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *ImageURL `json:"image_url,omitempty"`
}

// ImageURL names an image: an https URL, or a data URL that holds it.
type ImageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"` // auto, low or high
}

// Data splits a data URL into its media type and base64 text. ok is false for
// any other URL.
func (u *ImageURL) Data() (mediaType, base64 string, ok bool) {
	rest, ok := strings.CutPrefix(u.URL, "data:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ";base64,")
}

// ToolCall is a call the model asks for. On the wire it has the OpenAI shape,
// {"id", "type": "function", "function": {"name", "arguments"}}, so that a
// caller can put it back into the next request unchanged.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // a JSON object, as text
}

// LogValue keeps completions out of logs.
func (t ToolCall) LogValue() slog.Value { return slog.StringValue(t.Name) }
