package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/llmbus/llmbus/llm"
)

// stream serves a streamed chat completion.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, ask llm.Completer, c *chat) {
	out := newEvents(w, s.cfg, c)
	defer out.close() // also if the loop is left by a panic
	err := out.forward(ask.Stream(ctx, c.req))
	switch begun := out.close(); {
	case err == nil:
		return
	case !begun:
		s.refuse(w, r, err)
		return
	case !errors.Is(err, errUnread) && !gone(r):
		p := problemOf(err)
		s.note(ctx, "stream broken off", c.req.ID, &p)
		out.fail(p)
	}
	panic(http.ErrAbortHandler) // the body ends without its last chunk: whoever does not read events sees that, too
}

// forward writes the frames of an answer as events, up to its end.
func (e *events) forward(frames func(func(llm.Frame, error) bool)) error {
	for f, err := range frames {
		if err == nil {
			err = e.frame(&f)
		}
		if err != nil || f.Type == llm.FrameEnd {
			return err
		}
	}
	return llm.Errorf(llm.CodeInterrupted, "the answer ended early")
}

// frame writes one frame.
func (e *events) frame(f *llm.Frame) error {
	if f.Attempt > e.attempt && e.shown {
		return llm.Errorf(llm.CodeInterrupted, "the answer broke off, and what came is no part of the one that was begun instead")
	}
	switch e.attempt = f.Attempt; f.Type {
	case llm.FrameStart:
		e.start(f)
		return nil // it may yet fail, with a status of its own
	case llm.FrameDelta:
		e.shown = true
		e.text += len(f.Text)
		return e.send(e.delta(f.Text), nil)
	case llm.FrameToolCall:
		e.shown = true
		return e.send(e.toolCall(f), nil)
	case llm.FrameEnd:
		if err := queued(f.Response); err != nil {
			return err
		}
		if e.text != len(f.Response.Content) {
			return llm.Errorf(llm.CodeInterrupted, "the answer is another than what was sent of it; ask again")
		}
		last, err := e.last(f.Response)
		if err != nil {
			return err
		}
		return e.send(last, f.Response)
	}
	return nil
}
