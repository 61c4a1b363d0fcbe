package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

// overdue is how long a Completer may take to return after its context ended
// before the caller is answered without it. A good one returns at once and
// brings the history of its attempts.
const overdue = 250 * time.Millisecond

// take is called for every message, one after another, and never waits.
func (w *Worker) take(ctx context.Context, msg *nats.Msg) {
	arrived := time.Now()
	w.stats.requests.Add(1)
	tenant := w.tenantOf(msg)
	if why := w.slots.take(tenant, arrived); why != none {
		w.stats.busy.Add(1)
		w.refuse(msg, w.busy(why))
		return
	}
	w.running.Add(1)
	w.crew.run(func() {
		defer w.running.Done()
		defer func() { w.slots.give(tenant, time.Now()) }()
		w.serve(ctx, msg, arrived)
	})
}

// serve takes one request from admission to its terminal message.
func (w *Worker) serve(ctx context.Context, msg *nats.Msg, arrived time.Time) {
	if !w.mayAnswer(msg) {
		return
	}
	j, err := w.admit(msg, arrived)
	switch {
	case err != nil:
		e, _ := terminal(ctx, err)
		w.refuse(msg, e)
		return
	case j.reply == "" && j.frames == "":
		w.unanswerable()
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.running.cancel, j.running.replies = cancel, j.reply != ""
	if !w.active.add(j.key, &j.running) {
		w.refuse(msg, llm.Errorf(llm.CodeInvalidRequest, "a request with this id is under way; every request needs an id of its own"))
		return
	}
	defer w.leaveActive(j)
	if err := w.unused(ctx, j); err != nil {
		w.leaveActive(j) // the refusal may have to go to its stream
		e, _ := terminal(ctx, err)
		w.refuse(msg, e)
		return
	}
	w.run(ctx, j)
}

// leaveActive frees the id for another request. It may be called again.
func (w *Worker) leaveActive(j *admitted) { w.active.remove(j.key, &j.running) }

// run works on an admitted request.
func (w *Worker) run(ctx context.Context, j *admitted) {
	ctx, cancel := context.WithDeadlineCause(ctx, j.deadline, llm.ErrDeadline)
	defer cancel()
	a := w.newAnswer(j)
	if ctx.Err() != nil {
		a.finish(nil, fromCause(ctx))
		return
	}
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(overdue, func() { a.finish(nil, fromCause(ctx)) })
	})
	defer stop()
	resp, err := w.call(ctx, j.req, a.frames)
	if err == nil {
		a.finish(resp, nil)
		return
	}
	e, expected := terminal(ctx, err)
	if !expected {
		w.log.Error("request failed in an unexpected way", "id", j.req.ID, "feature", j.req.Feature, "error_type", fmt.Sprintf("%T", err))
	}
	a.finish(nil, e)
}

// call asks the Completer. A panic becomes an error; neither its value, which
// may hold a prompt, nor anything else of the request is logged.
func (w *Worker) call(ctx context.Context, req *llm.Request, frames *stream.Writer) (resp *llm.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.stats.panics.Add(1)
			w.log.Error("panic", "id", req.ID, "feature", req.Feature, "value_type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			resp, err = nil, llm.Errorf(llm.CodeInternal, "the worker made a mistake; its log tells more")
		}
	}()
	if frames == nil {
		resp, err = w.cfg.Completer.Complete(ctx, req)
	} else {
		resp, err = w.forward(ctx, req, frames)
	}
	if resp == nil && err == nil {
		err = errNoAnswer
	}
	return resp, err
}

// forward passes frames on as they come and returns the Response of the last.
func (w *Worker) forward(ctx context.Context, req *llm.Request, frames *stream.Writer) (*llm.Response, error) {
	for f, err := range w.cfg.Completer.Stream(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case f.Type == llm.FrameError:
			return nil, cmp.Or(f.Error, llm.ErrInternal)
		case f.Type == llm.FrameEnd:
			return f.Response, nil
		}
		// A frame that the connection did not take is a gap to the reader, who has
		// the whole Response to fill it; a stream that ended without us needs no more.
		if err := frames.Write(f); errors.Is(err, stream.ErrEnded) {
			return nil, err
		}
	}
	return nil, errNoEnd
}
