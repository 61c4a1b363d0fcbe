package llm

import (
	"encoding/json"
	"log/slog"
)

// Class says who waits for the answer; it picks the defaults of a feature's
// budgets and what is done about a rate limit.
type Class string

const (
	ClassInteractive Class = "interactive" // a person waits
	ClassBackground  Class = "background"  // nobody waits: a rate limit may be waited out
	ClassStructured  Class = "structured"  // a program waits for JSON that fits a schema
)

// StreamTo says where the frames of a streamed answer go.
type StreamTo string

const (
	StreamToSubject StreamTo = "subject" // llm.stream.<request-id>; the whole Response goes to the reply subject
	StreamToReply   StreamTo = "reply"   // the reply subject, ended by an empty message
)

// Request is one question to a feature. The JSON form is what callers publish;
// fields tagged "-" are set on the way from the subject, the headers or the
// chain and are never read from the payload.
type Request struct {
	ID          string `json:"-"` // from Llm-Request-Id, or made by the worker
	Feature     string `json:"-"` // from the subject
	Tenant      string `json:"-"` // from the subject or, in single-tenant mode, Llm-Tenant; empty is the only tenant
	Model       string `json:"-"` // the provider's model id; set by the chain for each attempt
	TraceParent string `json:"-"` // the traceparent header, unparsed
	Job         bool   `json:"-"` // one try of a job: nobody waits, and a failed try is followed by another

	Messages          []Message       `json:"messages,omitempty"`
	Tools             []Tool          `json:"tools,omitempty"`
	ToolChoice        *ToolChoice     `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	JSONSchema        *JSONSchema     `json:"json_schema,omitempty"`
	MaxTokens         int             `json:"max_tokens,omitempty"`  // 0 means the model's default
	Temperature       *float64        `json:"temperature,omitempty"` // 0 to 2
	TopP              *float64        `json:"top_p,omitempty"`       // above 0, up to 1
	Stop              []string        `json:"stop,omitempty"`        // at most MaxStops
	Seed              *int64          `json:"seed,omitempty"`
	Stream            bool            `json:"stream,omitempty"`
	StreamTo          StreamTo        `json:"stream_to,omitempty"` // empty: subject if the caller sent an id, otherwise reply
	Resumable         bool            `json:"resumable,omitempty"` // with Stream: frames are kept for a while, for readers that come back
	TimeoutMS         int64           `json:"timeout_ms,omitempty"`
	Class             Class           `json:"class,omitempty"`      // empty: the feature's
	DataClass         string          `json:"data_class,omitempty"` // empty: the feature's
	IdempotencyKey    string          `json:"idempotency_key,omitempty"`
	NoFailover        bool            `json:"no_failover,omitempty"` // ask the first usable target only
	Metadata          json.RawMessage `json:"metadata,omitempty"`    // opaque, echoed in the Response

	// Warnings names what the decoder left out, such as unknown fields. It is
	// copied to the Response.
	Warnings []string `json:"-"`

	messagesJSON json.RawMessage
}

// MessagesJSON returns the messages as the caller wrote them, for a provider
// whose shape they have already: it saves encoding a long prompt again. It is
// nil unless every message is just a role and a text, perhaps with a name or a
// tool_call_id, and nothing else stands beside them. It must not be modified.
func (r *Request) MessagesJSON() json.RawMessage { return r.messagesJSON }

// LogValue keeps prompts out of logs.
func (r *Request) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", r.ID), slog.String("feature", r.Feature),
		slog.Int("messages", len(r.Messages)), slog.Int("tools", len(r.Tools)))
}

// Tool is a function the model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON schema of type object; empty means no arguments
	Strict      *bool           `json:"strict,omitempty"`
}

// Modes of a ToolChoice.
const (
	ToolChoiceAuto     = "auto"
	ToolChoiceNone     = "none"
	ToolChoiceRequired = "required" // call some tool
	ToolChoiceNamed    = "function" // call the tool of that Name
)

// ToolChoice says whether the model must call a tool.
type ToolChoice struct {
	Mode string
	Name string // with ToolChoiceNamed only
}

// JSONSchema asks for an answer that is one JSON value fitting Schema
// (draft 2020-12).
type JSONSchema struct {
	Name   string          `json:"name,omitempty"`   // 1 to 64 of [A-Za-z0-9_-]; "answer" when empty
	Schema json.RawMessage `json:"schema"`           // an object or a boolean
	Strict *bool           `json:"strict,omitempty"` // passed to providers that know it
}

// Bounds that the decoder enforces, so that no later layer has to.
const (
	MaxMessages = 4096 // messages in one request
	MaxTools    = 256  // tools in one request
	MaxStops    = 4    // stop sequences, the smallest number all providers take
)
