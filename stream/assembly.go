package stream

import (
	"strings"

	"github.com/llmbus/llmbus/llm"
)

// Assembly puts a streamed answer together: text in the order it came, tool
// calls by their index and never by their id. A frame of a higher attempt
// discards what came before. The zero value is ready. It is not for use by
// several goroutines at once.
type Assembly struct {
	attempt int
	text    strings.Builder
	calls   []*pieces
}

// pieces of one tool call.
type pieces struct {
	index     int
	id, name  string
	arguments strings.Builder
}

// Add takes one frame of any type.
func (a *Assembly) Add(f *llm.Frame) {
	if f.Attempt > a.attempt {
		*a = Assembly{attempt: f.Attempt}
	}
	if f.Attempt < a.attempt {
		return
	}
	switch f.Type {
	case llm.FrameDelta:
		a.text.WriteString(f.Text)
	case llm.FrameToolCall:
		call := a.call(f.Index)
		if call.id == "" {
			call.id = f.ID
		}
		if call.name == "" {
			call.name = f.Name
		}
		call.arguments.WriteString(f.Arguments)
	}
}

func (a *Assembly) call(index int) *pieces {
	for _, c := range a.calls {
		if c.index == index {
			return c
		}
	}
	a.calls = append(a.calls, &pieces{index: index})
	return a.calls[len(a.calls)-1]
}

// Text is the text so far.
func (a *Assembly) Text() string { return a.text.String() }

// Calls are the tool calls so far, in the order in which they began.
func (a *Assembly) Calls() []llm.ToolCall {
	var calls []llm.ToolCall
	for _, c := range a.calls {
		calls = append(calls, llm.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	return calls
}

// Missing is what whole goes on with after the text so far. ok is false when
// the text so far is not the beginning of whole, so that nothing can be added
// to make it right.
func (a *Assembly) Missing(whole string) (rest string, ok bool) {
	return strings.CutPrefix(whole, a.Text())
}

// Complete puts back into the Response of an end frame what it left out
// because frames had carried it.
func (a *Assembly) Complete(resp *llm.Response) {
	if resp.Content == "" {
		resp.Content = a.Text()
	}
	if len(resp.ToolCalls) == 0 {
		resp.ToolCalls = a.Calls()
	}
}
