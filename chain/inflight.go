package chain

import (
	"context"
	"sync"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// calls knows what is under way, so that a switch set to "off now" reaches it.
type calls struct {
	switches Switches
	mu       sync.Mutex
	active   map[*inflight]struct{}
}

// inflight is a request, or with a target one call of it.
type inflight struct {
	calls  *calls
	req    *llm.Request
	target *Target
	cancel context.CancelCauseFunc
}

func newCalls(s Switches) *calls {
	return &calls{switches: s, active: make(map[*inflight]struct{})}
}

// enter books a request (t is nil) or a call, which must leave at its end. The
// switches are looked at after that: a flip is either seen here, or comes later
// and finds what is booked.
func (c *calls) enter(ctx context.Context, req *llm.Request, t *Target) (context.Context, *inflight) {
	ctx, cancel := context.WithCancelCause(ctx)
	entry := &inflight{c, req, t, cancel}
	c.mu.Lock()
	c.active[entry] = struct{}{}
	c.mu.Unlock()
	if flags, _ := c.switches.Current(ctx); entry.mustStop(flags) {
		cancel(llm.ErrSwitchedOff)
	}
	return ctx, entry
}

// leave ends the context that enter returned.
func (e *inflight) leave() {
	e.calls.mu.Lock()
	delete(e.calls.active, e)
	e.calls.mu.Unlock()
	e.cancel(nil)
}

// cut stops everything under way that a switch says must stop now.
func (c *calls) cut(flags *kv.FlagSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for entry := range c.active {
		if entry.mustStop(flags) {
			entry.cancel(llm.ErrSwitchedOff)
		}
	}
}

func (e *inflight) mustStop(flags *kv.FlagSet) bool {
	if e.target != nil {
		return flags.TargetOffNow(e.target.Provider, e.target.Model)
	}
	flag, off := flags.Off(e.req.Feature, e.req.Tenant)
	return off && flag.Now
}
