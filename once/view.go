package once

import "github.com/llmbus/llmbus/llm"

// view shows an answer to one reader. It is used by one goroutine. A nil view
// shows nothing.
type view struct {
	yield func(llm.Frame, error) bool
	gone  bool // the reader broke out of its loop

	attempt int // of the start frame that was shown last; below 0: none
	shown   int // bytes of its text
	skip    int // bytes still to come that were shown before
}

// pass shows a frame of the request's own call.
func (v *view) pass(f llm.Frame) bool {
	v.attempt = max(v.attempt, f.Attempt)
	return v.send(f)
}

func (v *view) send(f llm.Frame) bool {
	v.gone = v.gone || !v.yield(f, nil)
	return !v.gone
}

// committed reports whether text of a followed call was shown.
func (v *view) committed() bool { return v != nil && v.shown > 0 }

// begin expects the frames of a call from its first on, be it again.
func (v *view) begin() {
	if v == nil {
		return
	}
	if v.skip = v.shown; v.shown == 0 {
		v.attempt = -1
	}
}

// take shows a frame of a followed call, but for what was shown before. It
// reports whether the reader is still there.
func (v *view) take(f llm.Frame) bool {
	switch {
	case v == nil:
		return true
	case f.Type == llm.FrameStart && f.Attempt > v.attempt:
		v.attempt, v.shown, v.skip = f.Attempt, 0, 0
		return v.send(f)
	case f.Visible():
		again := min(v.skip, len(f.Text))
		if v.skip -= again; again == len(f.Text) {
			return true
		}
		f.Text = f.Text[again:]
		v.shown += len(f.Text)
		return v.send(f)
	}
	return true
}

// finish shows what is missing of an answer, and its end.
func (v *view) finish(resp *llm.Response) {
	attempt := max(1, v.attempt, len(resp.Attempts))
	if resp.Replayed {
		if v.attempt < 0 && v.shown == 0 && !v.send(llm.Frame{Attempt: attempt, Type: llm.FrameStart, Provider: resp.Provider, Model: resp.Model}) {
			return
		}
		if v.shown < len(resp.Content) && !v.send(llm.Frame{Attempt: attempt, Type: llm.FrameDelta, Text: resp.Content[v.shown:]}) {
			return
		}
		for i, c := range resp.ToolCalls {
			if !v.send(llm.Frame{Attempt: attempt, Type: llm.FrameToolCall, Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}) {
				return
			}
		}
	}
	v.send(llm.Frame{Attempt: attempt, Type: llm.FrameEnd, Response: resp})
}
