package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Assembly puts an answer together from its pieces, and makes their frames. A
// whole answer goes through it, too, so that both ways end in the same Response.
// The zero value is ready; it serves one answer.
type Assembly struct {
	first           string // the text while it is one piece, as that of most whole answers is
	text, reasoning strings.Builder
	shown           int // bytes of text that frames were made for
	calls           []*pendingCall
}

type pendingCall struct {
	id, name  string
	arguments strings.Builder
}

// Say adds visible text, for which Unshown makes a frame.
func (a *Assembly) Say(piece string) {
	if a.said() == "" {
		a.first = piece
		return
	}
	a.gather()
	a.text.WriteString(piece)
}

// SayBytes is Say for text that may change afterwards.
func (a *Assembly) SayBytes(piece []byte) {
	a.gather()
	a.text.Write(piece)
}

// gather makes room for a further piece.
func (a *Assembly) gather() {
	a.text.WriteString(a.first)
	a.first = ""
}

// said is the text so far.
func (a *Assembly) said() string {
	if a.first != "" {
		return a.first
	}
	return a.text.String() // no copy: what was written does not change
}

// Unshown is the frame for the text that no frame shows yet. Without any it has
// no type.
func (a *Assembly) Unshown() llm.Frame {
	text := a.said()
	if a.shown == len(text) {
		return llm.Frame{}
	}
	f := llm.Frame{Type: llm.FrameDelta, Text: text[a.shown:]}
	a.shown = len(text)
	return f
}

// Reasoning adds thinking.
func (a *Assembly) Reasoning(piece string) llm.Frame {
	a.reasoning.WriteString(piece)
	return llm.Frame{Type: llm.FrameReasoning, Text: piece}
}

// Call begins a tool call; its frame says the index that Arguments takes. A
// call without an id, or with that of another call, is given one.
func (a *Assembly) Call(id, name string) llm.Frame {
	if id == "" || slices.ContainsFunc(a.calls, func(c *pendingCall) bool { return c.id == id }) {
		id = NewCallID()
	}
	a.calls = append(a.calls, &pendingCall{id: id, name: name})
	last := len(a.calls) - 1
	return llm.Frame{Type: llm.FrameToolCall, Index: last, ID: a.calls[last].id, Name: name}
}

// Arguments adds a piece of a call's arguments.
func (a *Assembly) Arguments(index int, piece string) llm.Frame {
	a.calls[index].arguments.WriteString(piece)
	return llm.Frame{Type: llm.FrameToolCall, Index: index, Arguments: piece}
}

// WholeCall adds a tool call that came in one piece.
func (a *Assembly) WholeCall(id, name string, arguments json.RawMessage) llm.Frame {
	frame := a.Call(id, name)
	frame.Arguments = argumentText(arguments)
	a.calls[frame.Index].arguments.WriteString(frame.Arguments)
	return frame
}

// argumentText is a JSON object as text. Some servers send it as a string that
// holds it, or not at all where there are no arguments.
func argumentText(raw json.RawMessage) string {
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		raw = json.RawMessage(quoted) // null unmarshals to nothing, too
	}
	return cmp.Or(strings.TrimSpace(string(raw)), "{}")
}

// HasArguments reports whether any piece of a call's arguments has come.
func (a *Assembly) HasArguments(index int) bool { return a.calls[index].arguments.Len() > 0 }

// Empty reports whether there is neither text nor a call.
func (a *Assembly) Empty() bool { return a.said() == "" && len(a.calls) == 0 }

// Response is the answer so far. A call without arguments has {}, and an
// answer that stopped with calls has stopped for them, whatever it says.
func (a *Assembly) Response(finish llm.FinishReason) *llm.Response {
	r := &llm.Response{Content: a.said(), Reasoning: a.reasoning.String(), FinishReason: finish}
	for _, c := range a.calls {
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{
			ID: c.id, Name: c.name, Arguments: cmp.Or(strings.TrimSpace(c.arguments.String()), "{}"),
		})
	}
	if len(r.ToolCalls) > 0 && (finish == llm.FinishStop || finish == llm.FinishUnknown) {
		r.FinishReason = llm.FinishToolCalls
	}
	return r
}

// Refusal is the failure of an answer that a filter or the model itself held
// back; usage, which may be nil, is billed all the same.
func (r *Response) Refusal(usage *llm.Usage) *provider.Failure {
	return r.unusable(llm.OutcomeContentFiltered, usage)
}

// NoOutput is the failure of a clean answer that holds nothing usable, which
// finish may explain.
func (r *Response) NoOutput(finish llm.FinishReason, usage *llm.Usage) *provider.Failure {
	f := r.unusable(llm.OutcomeInvalidOutput, usage)
	if finish == llm.FinishLength {
		f.Detail = provider.DetailLengthCut
	}
	return f
}

func (r *Response) unusable(outcome llm.Outcome, usage *llm.Usage) *provider.Failure {
	f := provider.Fail(outcome, nil)
	f.Status, f.RequestID, f.Usage = r.Status, r.RequestID(), usage
	return f
}
