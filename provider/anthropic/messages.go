package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Roles and block types of the API.
const (
	roleUser      = "user"
	roleAssistant = "assistant"

	blockText       = "text"
	blockImage      = "image"
	blockToolUse    = "tool_use"
	blockToolResult = "tool_result"
	blockThinking   = "thinking"
)

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a piece of a message; which fields it has depends on its type.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *imageSource    `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

func (r *request) setMessages(req *llm.Request) error {
	for i := range req.Messages {
		if err := r.addMessage(&req.Messages[i]); err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 {
		return wire.Unsupported("a conversation without a message of the user")
	}
	for _, m := range r.Messages {
		resultsFirst(m.Content)
	}
	return nil
}

func (r *request) addMessage(m *llm.Message) error {
	content, err := r.blocks(m.Content)
	if err != nil {
		return err
	}
	if m.Name != "" && m.Role != llm.RoleTool { // a result is known by its call
		r.warn("the names of authors were left out")
	}
	switch m.Role {
	case llm.RoleSystem:
		return r.addSystem(content)
	case llm.RoleTool:
		r.add(roleUser, []block{{Type: blockToolResult, ToolUseID: wire.SafeCallID(m.ToolCallID), Content: content}})
	case llm.RoleAssistant:
		r.add(roleAssistant, append(content, toolUses(m.ToolCalls)...))
	default:
		r.add(roleUser, content)
	}
	return nil
}

// addSystem moves a system message to the one place that the API has for them.
func (r *request) addSystem(content []block) error {
	for _, b := range content {
		if b.Type != blockText {
			return wire.Unsupported("an image in a system message")
		}
	}
	if len(r.Messages) > 0 {
		r.warn("a system message was moved to the front")
	}
	r.System = append(r.System, content...)
	return nil
}

// add merges messages of one role in a row, which the API wants to alternate.
func (r *request) add(role string, content []block) {
	if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == role {
		r.Messages[last].Content = append(r.Messages[last].Content, content...)
		return
	}
	if len(content) > 0 {
		r.Messages = append(r.Messages, message{role, content})
	}
}

// resultsFirst puts tool results before everything else in their message, where
// the API demands them.
func resultsFirst(content []block) {
	slices.SortStableFunc(content, func(a, b block) int { return rank(a) - rank(b) })
}

func rank(b block) int {
	if b.Type == blockToolResult {
		return 0
	}
	return 1
}

func toolUses(calls []llm.ToolCall) []block {
	blocks := make([]block, 0, len(calls))
	for _, c := range calls {
		input := json.RawMessage(c.Arguments)
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		blocks = append(blocks, block{Type: blockToolUse, ID: wire.SafeCallID(c.ID), Name: c.Name, Input: input})
	}
	return blocks
}

// blocks translates content. Empty text, which the API refuses, says nothing
// and is left out.
func (r *request) blocks(content llm.Content) ([]block, error) {
	blocks := make([]block, 0, len(content)+1)
	for i := range content {
		part := &content[i]
		switch {
		case part.Type == llm.PartImage:
			source, err := r.image(part.Image)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, block{Type: blockImage, Source: source})
		case part.Text != "":
			blocks = append(blocks, block{Type: blockText, Text: part.Text})
		}
	}
	return blocks, nil
}

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func (r *request) image(image *llm.ImageURL) (*imageSource, error) {
	if image.Detail != "" && image.Detail != "auto" {
		r.warn("the detail of an image was left out")
	}
	if !wire.IsDataURL(image.URL) {
		return &imageSource{Type: "url", URL: image.URL}, nil
	}
	mediaType, data, ok := image.Data()
	if !ok || !slices.Contains(imageTypes, mediaType) {
		return nil, wire.Unsupported("an image that is no JPEG, PNG, GIF or WebP in base64")
	}
	return &imageSource{Type: "base64", MediaType: mediaType, Data: data}, nil
}
