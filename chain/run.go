package chain

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// run is one request on its way through the targets.
type run struct {
	*Chain
	req      *llm.Request
	flags    *kv.FlagSet
	degraded bool
	failover bool

	queue    []*Target // still to be asked, in order
	notes    *trail    // nil: nobody asks what became of each target
	begun    time.Time
	attempts []llm.Attempt
	called   []*Target      // by each of them
	ahead    []*Target      // memory of later
	served   *Target        // of the call under way
	permit   breaker.Permit // of the call under way
	visible  bool           // the caller has seen text of this attempt
	shown    bool           // the caller has seen text of an earlier one
	received int            // bytes of text and reasoning of this attempt
	reading  bool           // the reader of the stream has a frame in hand
	refused  []string       // why targets were passed over
	over     *OverLimit     // the last target that was for its tenant's limits; nil if none was
	soonest  time.Duration  // until some target may be free; 0 is unknown
	last     *provider.Failure
	broken   *llm.Error // text of an earlier attempt was seen and is to be replaced

	one struct { // memory of the only attempt that most requests need
		attempts [1]llm.Attempt
		called   [1]*Target
	}
}

// Reasons to pass a target over, beside those that breakers give.
const (
	refusedBySwitch  = "switched_off"
	refusedByBreaker = "circuit_open"
	refusedByLimit   = "over_limit"
)

// call makes one call to a target. Its error is a *provider.Failure.
type call func(context.Context, *Target) (*llm.Response, error)

// loop makes attempts until one is good or there is nothing left to do.
func (r *run) loop(ctx context.Context, do call) (*llm.Response, error) {
	for {
		t, permit := r.pick(ctx)
		if ctx.Err() != nil {
			if t != nil {
				permit.Done(ctx, breaker.Result{Kind: breaker.Neutral})
			}
			return nil, r.fail(ended(ctx))
		}
		if t == nil {
			return nil, r.nobody()
		}
		r.permit = permit
		resp, failure := r.attempt(ctx, t, do)
		if failure == nil {
			return r.succeed(resp), nil
		}
		if err := r.after(ctx, t, failure); err != nil {
			return nil, r.fail(err)
		}
	}
}

// pick takes the next target that no switch forbids now and whose breaker
// admits a call. The caller must give the permit back.
func (r *run) pick(ctx context.Context) (*Target, breaker.Permit) {
	if len(r.attempts) > 0 { // a switch may have been flipped since
		flags, degraded := r.env.switches.Current(ctx)
		r.flags, r.degraded = flags, r.degraded || degraded
	}
	for len(r.queue) > 0 && ctx.Err() == nil {
		t := r.queue[0]
		r.queue = r.queue[1:]
		if r.switchedOff(t) {
			continue
		}
		if err := r.tab.cover(ctx, r.req, t); err != nil {
			r.over, _ = errors.AsType[*OverLimit](err) // else ctx has ended
			r.refused = append(r.refused, refusedByLimit)
			r.notes.skipped(t, SkipOverLimit, r.over.limit())
			continue
		}
		permit, err := r.acquire(ctx, t)
		if err == nil {
			if !r.failover {
				r.queue = nil
			}
			return t, permit
		}
		r.passOver(t, err)
	}
	return nil, breaker.Permit{}
}

// switchedOff passes a target over that a switch forbids.
func (r *run) switchedOff(t *Target) bool {
	off := r.flags.TargetOff(t.Provider, t.Model)
	if off {
		r.refused = append(r.refused, refusedBySwitch)
		r.notes.skipped(t, SkipSwitchedOff, "")
	}
	return off
}

// passOver notes that a breaker refuses a call.
func (r *run) passOver(t *Target, err error) {
	why := refusedByBreaker
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		why = open.Why
		r.mayReturn(open.RetryAfter)
		r.notes.refused(t, open)
	}
	r.refused = append(r.refused, why)
}

// acquire asks the breaker. A target that this request has waited for may cool
// a little longer than its provider asked, since workers spread their return.
func (r *run) acquire(ctx context.Context, t *Target) (breaker.Permit, error) {
	permit, err := t.Breaker.Acquire(ctx)
	open, refused := errors.AsType[*breaker.OpenError](err)
	if refused && open.State == breaker.Cooling && r.calls(t) > 0 && open.RetryAfter < r.room(ctx, t) && sleep(ctx, open.RetryAfter) {
		return t.Breaker.Acquire(ctx)
	}
	return permit, err
}

// attempt makes one call, books it and tells the breaker. What is below it on the
// stack stays there as long as a stream lasts, so its parts have frames of their
// own.
func (r *run) attempt(ctx context.Context, t *Target, do call) (*llm.Response, *provider.Failure) {
	ctx = r.env.followers.attemptBegan(ctx, r.req, t)
	ctx, entry := r.env.calls.enter(ctx, r.req, t)
	defer entry.leave()
	r.open(t)
	began, hurried := time.Now(), r.hurried(ctx, t)
	resp, err := r.survive(ctx, t, do)
	failure := r.book(t, resp, err, time.Since(began))
	r.env.followers.attemptEnded(ctx, r.req, r.booked())
	r.report(ctx, t, failure, hurried)
	return resp, failure
}

// open begins the record of a call.
func (r *run) open(t *Target) {
	if r.served != nil && r.served != t {
		r.emit(EventFailoverAttempted, t)
	}
	r.served, r.shown, r.visible, r.received = t, r.shown || r.visible, false, 0
	r.called = append(r.called, t)
	r.notes.called(t)
	r.attempts = append(r.attempts, llm.Attempt{Provider: t.Provider, Model: t.Model, Breaker: string(r.permit.State())})
}

// calls is how often the target was called so far.
func (r *run) calls(t *Target) (n int) {
	for _, called := range r.called {
		if called == t {
			n++
		}
	}
	return n
}

// targetsCalled is how many targets were called so far.
func (r *run) targetsCalled() (n int) {
	for i, t := range r.called {
		if !slices.Contains(r.called[:i], t) {
			n++
		}
	}
	return n
}

// booked is the record of the call under way, or of the last one.
func (r *run) booked() *llm.Attempt { return &r.attempts[len(r.attempts)-1] }

// book completes the record of a call and says how it failed, if it did.
func (r *run) book(t *Target, resp *llm.Response, err error, took time.Duration) *provider.Failure {
	booked, failure := r.booked(), r.classify(err)
	booked.MS = took.Milliseconds()
	if failure == nil && !believable(resp.Usage) {
		resp.Usage = estimate(r.req, len(resp.Content)+len(resp.Reasoning))
	}
	if failure != nil && !believable(failure.Usage) && r.received > 0 { // billed up to the cut
		booked.Usage = estimate(r.req, r.received)
	}
	book(booked, t, resp, failure)
	r.notes.outcome(t, booked.Class)
	r.tab.called(booked)
	return failure
}

// classify names a failure after text was seen for what it is to the caller,
// unless its own name says that already.
func (r *run) classify(err error) *provider.Failure {
	if err == nil {
		return nil
	}
	failure := provider.AsFailure(err)
	if r.visible && !slices.Contains(keepsName, failure.Outcome) {
		broken := *failure
		broken.Outcome, broken.Detail = llm.OutcomeInterrupted, provider.DetailNone
		return &broken
	}
	return failure
}

var keepsName = []llm.Outcome{llm.OutcomeIdleTimeout, llm.OutcomeTimeout, llm.OutcomeCancelled, llm.OutcomeContentFiltered, llm.OutcomeInvalidOutput}

// room is what the target may use of the remaining time now.
func (r *run) room(ctx context.Context, t *Target) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return r.feature.Timeout
	}
	return share(time.Until(deadline), t, r.later())
}

// later lists the targets that would be asked after the current one. The list
// stands until the next call.
func (r *run) later() []*Target {
	r.ahead = r.ahead[:0]
	for _, t := range r.queue {
		if t.Breaker.Ready() && !r.flags.TargetOff(t.Provider, t.Model) && r.calls(t) == 0 {
			r.ahead = append(r.ahead, t)
		}
	}
	return r.ahead
}

// timed puts the limits of this call around the adapter. A first-token limit
// would only turn a slow answer into none where no other target can follow, and
// the deadline of the whole operation bounds the last call already.
func (r *run) timed(ctx context.Context, t *Target) provider.Timed {
	limits := t.Limits
	if len(r.later()) == 0 {
		limits.FirstToken, limits.Total = 0, 0
	} else {
		limits.Total = r.room(ctx, t)
	}
	if end, ok := r.permit.Deadline(); ok { // another probe may begin soon after
		limits.Total = max(1, min(cmp.Or(limits.Total, time.Hour), time.Until(end))) // 0 would be no limit
	}
	return provider.Timed{Inner: t.Completer, Limit: limits}
}

// attemptRequest is the request as the target's adapter gets it. The Router made
// a copy for this request, which serves the first attempt.
func (r *run) attemptRequest(t *Target) *llm.Request {
	if len(r.attempts) == 1 {
		r.req.Model = t.Model
		return r.req
	}
	req := *r.req
	req.Model = t.Model
	return &req
}

// complete is the call of a request that is not streamed.
func (r *run) complete(ctx context.Context, t *Target) (*llm.Response, error) {
	timed := r.timed(ctx, t)
	resp, err := timed.Complete(ctx, r.attemptRequest(t))
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, provider.Fail(llm.OutcomeUnavailable, errNoAnswer)
	}
	return resp, r.validate(resp)
}

// after carries out what follows a failure. An error ends the request.
func (r *run) after(ctx context.Context, t *Target, failure *provider.Failure) *llm.Error {
	r.last = failure
	if failure.RetryAfter != nil {
		r.mayReturn(*failure.RetryAfter)
	}
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case r.visible:
		return r.interrupted(ctx, t, failure)
	case errors.Is(failure, llm.ErrSwitchedOff): // this target alone was told to stop
		r.refused = append(r.refused, refusedBySwitch)
		r.notes.skipped(t, SkipSwitchedOff, "")
		return nil
	}
	d := r.feature.decide(situation{failure: failure, target: t, class: r.req.Class, calls: r.calls(t), room: r.room(ctx, t),
		pause: backoff(r.calls(t), r.env.random()), probe: r.permit.Probe(), failover: r.failover})
	r.env.log.LogAttrs(ctx, slog.LevelDebug, "attempt", slog.String("id", r.req.ID), slog.String("provider", t.Provider),
		slog.String("model", t.Model), slog.Any("error", failure), slog.Duration("wait", d.wait))
	switch d.action {
	case actRetry:
		r.queue = append([]*Target{t}, r.queue...)
		if !sleep(ctx, d.wait) {
			return ended(ctx)
		}
		return nil
	case actNextThenRetry:
		r.queue = append(r.queue, t)
		return nil
	case actNext:
		return r.narrow(d.fits, failure)
	}
	return r.terminal(failure)
}

// narrow keeps the targets that could do better than the failed one.
func (r *run) narrow(fits func(*Target) bool, failure *provider.Failure) *llm.Error {
	if fits == nil {
		return nil
	}
	var kept []*Target
	for _, t := range r.queue {
		if fits(t) {
			kept = append(kept, t)
			continue
		}
		r.notes.skipped(t, SkipNoBetter, "")
	}
	if r.queue = kept; len(kept) == 0 {
		return r.terminal(failure)
	}
	return nil
}

// sleep waits and reports whether the context is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
