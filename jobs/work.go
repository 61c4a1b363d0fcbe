package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// afterWord bounds what is done for a job once the worker is to end: an answer
// that is there already is stored, or a job is given back.
const afterWord = 5 * time.Second

// work takes one delivery of a job to its end. stop ends the calls under way,
// and a little later everything.
func (w *Worker) work(stop context.Context, msg jetstream.Msg) {
	j, err := newJob(msg)
	if err != nil {
		w.log.Error("a message is no job", "subject", msg.Subject(), "error", err)
		return
	}
	ctx, cancel := outlive(stop, afterWord)
	defer cancel()
	lease := w.hold(j)
	defer lease.release()
	c := &courier{Worker: w, job: j, lease: lease, stopping: func() bool { return stop.Err() != nil }}
	done, err := c.known(ctx)
	switch {
	case err != nil:
		w.log.Warn("a job was put off, since it is not known what has become of it", "id", j.id, "error", err)
		c.putOff(time.Second)
	case done:
		c.acknowledge(ctx)
	default:
		c.attempt(ctx, stop)
	}
}

// outlive is a context that ends a while after another.
func outlive(stop context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	unhook := context.AfterFunc(stop, func() {
		sleep(ctx, by)
		cancel()
	})
	return ctx, func() {
		unhook()
		cancel()
	}
}

// courier carries one delivery.
type courier struct {
	*Worker
	*job
	stopping func() bool // the worker is to end
	lease    *lease
	history  *history
	grave    uint64 // sequence of a dead letter that the next one replaces
}

// attempt decides whether the job is tried, tries it, and settles it.
func (c *courier) attempt(ctx, stop context.Context) {
	req, err := c.request(c.job)
	life := c.cfg.Expiry
	if err == nil {
		life, err = c.lifetime(c.job)
	}
	left := life - c.clock.now().Sub(c.published)
	switch {
	case c.history.Cancelled:
		c.bury(ctx, llm.ErrCancelled)
	case err != nil:
		c.bury(ctx, terminal(ctx, err))
	case c.history.lost(c.delivery) >= crashLimit:
		c.bury(ctx, llm.Errorf(llm.CodeInternal, "%d workers died while they had the job", crashLimit))
	case left <= 0:
		c.bury(ctx, expired(nil))
	default:
		c.try(ctx, stop, req, left)
	}
}

// try asks the Completer once.
func (c *courier) try(ctx, stop context.Context, req *llm.Request, left time.Duration) {
	limit := min(c.cfg.MaxTimeout, left)
	if req.TimeoutMS > 0 {
		limit = min(limit, time.Duration(req.TimeoutMS)*time.Millisecond)
	}
	calling, leave := c.active.enter(stop, c.key)
	defer leave()
	calling, cancel := context.WithTimeoutCause(calling, limit, llm.ErrDeadline)
	defer cancel()
	began := time.Now()
	resp, err := c.complete(calling, req)
	if err == nil {
		c.deliver(ctx, resp)
		return
	}
	e := terminal(calling, err)
	c.history.add(e)
	next := step{} // at once, when the worker is to end
	if !errors.Is(context.Cause(calling), error(errStopping)) || e.Code != errStopping.Code {
		next = c.cfg.Policy(c.feature).after(e, c.history, left-time.Since(began), rand.Float64())
	}
	c.settle(ctx, next)
}

// complete asks the Completer. A panic becomes an error; neither its value,
// which may hold a prompt, nor anything else of the request is logged.
func (c *courier) complete(ctx context.Context, req *llm.Request) (resp *llm.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic", "job", req.ID, "feature", req.Feature, "value_type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			resp, err = nil, llm.Errorf(llm.CodeInternal, "the worker made a mistake; its log tells more")
		}
	}()
	resp, err = c.cfg.Completer.Complete(ctx, req)
	if resp == nil && err == nil {
		err = llm.Errorf(llm.CodeInternal, "the worker made a mistake; its log tells more")
	}
	return resp, err
}

// settle writes the history and gives the job back or up.
func (c *courier) settle(ctx context.Context, next step) {
	err := c.remember(ctx, c.key, c.history)
	switch {
	case errors.Is(err, kv.ErrConflict):
		c.contested(ctx)
	case next.bury != nil:
		c.bury(ctx, next.bury)
	default: // a history that cannot be written loses one try, not the job
		c.putOff(next.wait)
	}
	if err != nil {
		c.log.Warn("the history of a job was not written", "id", c.id, "error", err)
	}
}

// contested looks who else has written the history. If somebody cancelled the
// job it is given up. Another worker that has it as well decides alone.
func (c *courier) contested(ctx context.Context) {
	h, err := c.recall(ctx, c.key, c.replay)
	if err == nil && h.Cancelled {
		h.Attempts, h.Tries = c.history.Attempts, c.history.Tries
		c.history = h
		c.bury(ctx, llm.ErrCancelled)
	}
}

// lease tells the server that a job is in hand.
type lease struct {
	stop    context.CancelFunc
	running sync.WaitGroup
}

// hold renews the lease every third of AckWait until it is released.
func (w *Worker) hold(j *job) *lease {
	ctx, stop := context.WithCancel(context.Background())
	l := &lease{stop: stop}
	l.running.Go(func() {
		for sleep(ctx, w.ackWait/3) {
			_ = j.msg.InProgress() // fails only with the connection, and then another worker gets the job
		}
	})
	return l
}

// release ends the renewal; it may be called again.
func (l *lease) release() {
	l.stop()
	l.running.Wait()
}
