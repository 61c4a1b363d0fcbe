package openai

import (
	"cmp"
	"encoding/json"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// chatRequest is the body of a Chat Completions call. Messages, tools and the
// tool choice have this shape already.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []llm.Message   `json:"messages,omitempty"`
	Tools               []llm.Tool      `json:"tools,omitempty"`
	ToolChoice          *llm.ToolChoice `json:"tool_choice,omitempty"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	Seed                *int64          `json:"seed,omitempty"`
	RandomSeed          *int64          `json:"random_seed,omitempty"`
	Stream              bool            `json:"stream,omitempty"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
}

type responseFormat struct {
	Type       string         `json:"type"`
	JSONSchema llm.JSONSchema `json:"json_schema"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// chatBody translates a request, into buf if it can. What cannot be sent is
// refused, not dropped.
func (c *Config) chatBody(buf []byte, req *llm.Request, stream bool) ([]byte, error) {
	text := c.asWritten(req)
	var messages []llm.Message
	if text == nil {
		var err error
		if messages, err = c.chatMessages(req.Messages); err != nil {
			return nil, err
		}
	}
	schema, err := namedSchema(req.JSONSchema)
	if err != nil {
		return nil, err
	}
	body := chatRequest{
		Model: req.Model, Messages: messages, Tools: completeTools(req.Tools),
		Temperature: req.Temperature, TopP: req.TopP, Stop: req.Stop, Stream: stream,
	}
	if len(req.Tools) > 0 { // else both are refused
		body.ToolChoice, body.ParallelToolCalls = req.ToolChoice, req.ParallelToolCalls
	}
	if schema != nil {
		body.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: *schema}
	}
	if c.MaxTokensField == maxTokens {
		body.MaxTokens = req.MaxTokens
	} else {
		body.MaxCompletionTokens = req.MaxTokens
	}
	if c.Family == FamilyMistral {
		body.RandomSeed = req.Seed
	} else {
		body.Seed = req.Seed
	}
	if stream && !c.NoStreamUsage && c.Family != FamilyMistral { // Mistral sends it unasked
		body.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if text == nil {
		return encode(body)
	}
	return body.splice(buf, text)
}

// asWritten returns the caller's own text of the messages if this server takes
// it unchanged, or nil.
func (c *Config) asWritten(req *llm.Request) json.RawMessage {
	text := req.MessagesJSON()
	if text == nil {
		return nil
	}
	for i := range req.Messages { // without parts and tool calls, or there would be no text
		m := &req.Messages[i]
		if m.Role == llm.RoleTool && (m.Name != "" || c.callID(m.ToolCallID) != m.ToolCallID) {
			return nil
		}
	}
	return text
}

// chatMessages are the messages with ids that this server takes.
func (c *Config) chatMessages(messages []llm.Message) ([]llm.Message, error) {
	out := make([]llm.Message, len(messages))
	for i, m := range messages {
		if err := imagesOnlyFromUsers(&m); err != nil {
			return nil, err
		}
		if m.Role == llm.RoleTool {
			m.ToolCallID, m.Name = c.callID(m.ToolCallID), ""
		}
		if len(m.ToolCalls) > 0 {
			calls := make([]llm.ToolCall, len(m.ToolCalls))
			for j, call := range m.ToolCalls {
				call.ID, call.Arguments = c.callID(call.ID), cmp.Or(call.Arguments, "{}")
				calls[j] = call
			}
			m.ToolCalls = calls
		}
		out[i] = m
	}
	return out, nil
}

const maxCallID = 40 // characters that OpenAI takes

func (c *Config) callID(id string) string {
	if c.Family == FamilyMistral || len(id) > maxCallID {
		return wire.ShortCallID(id)
	}
	return id
}

func imagesOnlyFromUsers(m *llm.Message) error {
	if m.Role == llm.RoleUser {
		return nil
	}
	for _, part := range m.Content {
		if part.Type == llm.PartImage {
			return wire.Unsupported("an image in a message of role " + string(m.Role))
		}
	}
	return nil
}

// namedSchema gives a schema the name that the API demands.
func namedSchema(schema *llm.JSONSchema) (*llm.JSONSchema, error) {
	if schema == nil {
		return nil, nil
	}
	if !isObject(schema.Schema) {
		return nil, wire.Unsupported("a JSON schema that is true or false")
	}
	named := *schema
	named.Name = cmp.Or(named.Name, "answer")
	return &named, nil
}

func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}

// noArguments is the schema of a tool that takes none; some servers demand one.
const noArguments = `{"type":"object","properties":{}}`

func completeTools(tools []llm.Tool) []llm.Tool {
	out := make([]llm.Tool, len(tools))
	for i, t := range tools {
		if t.Parameters == nil {
			t.Parameters = json.RawMessage(noArguments)
		}
		out[i] = t
	}
	return out
}

// encode fails only for raw JSON in the request that is none.
func encode(body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, wire.Unsupported("a part that is not valid JSON")
	}
	return data, nil
}
