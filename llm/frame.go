package llm

import "log/slog"

// FrameType says what a Frame carries.
type FrameType string

const (
	FrameStart    FrameType = "start"     // a provider was chosen: Provider and Model
	FrameDelta    FrameType = "delta"     // a piece of the answer: Text
	FrameToolCall FrameType = "tool_call" // a piece of a tool call: Index, then ID and Name once, then Arguments in pieces
	FramePing     FrameType = "ping"      // the worker is alive and waits
	FrameEnd      FrameType = "end"       // the answer is whole: Response
	FrameError    FrameType = "error"     // there will be no more: Error

	// FrameReasoning is a piece of the model's thinking. Adapters yield it, since it
	// proves that the model works; it is not forwarded to callers.
	FrameReasoning FrameType = "reasoning"
)

// Frame is one message of a streamed answer.
type Frame struct {
	Seq     uint64    `json:"seq"`     // rises by one from 1; set by the writer
	Attempt int       `json:"attempt"` // which answer this belongs to; a higher one replaces what came before
	Type    FrameType `json:"type"`

	Provider  string    `json:"provider,omitempty"`
	Model     string    `json:"model,omitempty"`
	Text      string    `json:"text,omitempty"`
	Index     int       `json:"index,omitempty"` // of the tool call
	ID        string    `json:"id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Arguments string    `json:"arguments,omitempty"`
	Response  *Response `json:"response,omitempty"` // without the text already sent
	Error     *Error    `json:"error,omitempty"`
}

// Visible reports whether the frame shows the caller a part of the answer.
// The first visible frame commits a stream to its provider. Pieces of a tool
// call are not visible: they are held back until the call is whole and valid.
func (f *Frame) Visible() bool { return f.Type == FrameDelta && f.Text != "" }

// Progress reports whether the frame proves that the model is at work, which
// is what the first-token and idle limits wait for.
func (f *Frame) Progress() bool {
	return f.Visible() || f.Type == FrameToolCall || f.Type == FrameReasoning
}

// Terminal reports whether the frame is the last of its stream.
func (f *Frame) Terminal() bool { return f.Type == FrameEnd || f.Type == FrameError }

// LogValue keeps completions out of logs.
func (f Frame) LogValue() slog.Value {
	return slog.GroupValue(slog.Uint64("seq", f.Seq), slog.String("type", string(f.Type)))
}
