package fake

import (
	"strings"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Step says what becomes of one call. The zero Step answers at once with an
// empty text. Its parts happen in the order of the fields.
type Step struct {
	Wait  time.Duration   // passes before anything else
	Until <-chan struct{} // must be closed before the call goes on; nil waits for nothing

	Reasoning string         // one piece of thinking, before the text
	Pieces    []string       // the text, one delta frame each
	Gap       time.Duration  // passes between two frames of a stream
	Calls     []llm.ToolCall // one tool_call frame each

	Hang     bool  // nothing more happens until the context ends
	Err      error // the call fails, a stream after its pieces
	Truncate bool  // a stream stops without an end frame; Complete fails as unavailable

	Finish   llm.FinishReason // empty: tool_calls if there are Calls, otherwise stop
	Usage    *llm.Usage       // nil: the provider sent none
	Version  string           // of the model, as the provider names it
	Response *llm.Response    // answer with a copy of this, whatever Pieces and Calls say
}

// Answer is a step that answers with the pieces, joined.
func Answer(pieces ...string) Step { return Step{Pieces: pieces} }

// Fails is a step that fails with err, which is a *provider.Failure where an
// adapter is played faithfully.
func Fails(err error) Step { return Step{Err: err} }

// FailsWith is a step that fails with the given class.
func FailsWith(outcome llm.Outcome) Step { return Step{Err: provider.Fail(outcome, nil)} }

// Hangs is a step that says nothing until its context ends.
func Hangs() Step { return Step{Hang: true} }

// CallsTools is a step that answers with tool calls.
func CallsTools(calls ...llm.ToolCall) Step { return Step{Calls: calls} }

func (s *Step) response(model string) *llm.Response {
	if s.Response != nil {
		return new(*s.Response)
	}
	resp := &llm.Response{
		Content: strings.Join(s.Pieces, ""), Reasoning: s.Reasoning, ToolCalls: s.Calls,
		Model: model, ModelVersion: s.Version, Usage: s.Usage, FinishReason: s.Finish,
	}
	switch {
	case resp.FinishReason != "":
	case len(s.Calls) > 0:
		resp.FinishReason = llm.FinishToolCalls
	default:
		resp.FinishReason = llm.FinishStop
	}
	return resp
}

// frames are those of a stream but the end.
func (s *Step) frames() []llm.Frame {
	var frames []llm.Frame
	if s.Reasoning != "" {
		frames = append(frames, llm.Frame{Type: llm.FrameReasoning, Text: s.Reasoning})
	}
	for _, piece := range s.Pieces {
		frames = append(frames, llm.Frame{Type: llm.FrameDelta, Text: piece})
	}
	for i, c := range s.Calls {
		frames = append(frames, llm.Frame{Type: llm.FrameToolCall, Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return frames
}
