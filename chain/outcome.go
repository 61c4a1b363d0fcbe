package chain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

var errNoEnd = errors.New("the adapter's stream ended without an end frame")

// A call's time-out says something about the provider if the call had half of
// what its feature would give it, though no more than longTrial is asked for, and
// at least shortTrial or all that there is. Without this a caller in a hurry
// could open the breaker for the fleet.
const (
	shortTrial = time.Second
	longTrial  = 10 * time.Second
)

// Pauses of a target whose provider named none.
const (
	coolRateLimit = time.Second
	coolQuota     = 5 * time.Minute
)

// report gives the permit back with what the call says about the provider.
func (r *run) report(ctx context.Context, t *Target, f *provider.Failure, hurried bool) {
	late := ctx.Err() != nil && r.visible // the model was at work when the caller's time ran out
	if f == nil {
		r.permit.Done(ctx, breaker.Result{Kind: breaker.Success})
		return
	}
	ctx = context.WithoutCancel(ctx)
	row, result := lookup(f.Outcome, f.Detail), breaker.Result{Kind: breaker.Neutral, Why: string(f.Outcome)}
	if row.trips && !late && !(f.Outcome == llm.OutcomeTimeout && hurried) {
		result.Kind = breaker.Failure
	}
	if pause, ok := cooling(f); ok {
		r.permit.Cool(ctx, pause, string(f.Outcome))
	}
	r.permit.Done(ctx, result)
	if row.alert {
		r.env.alert(ctx, r.req, t, f)
	}
}

// cooling is how long the target is to be left alone by the whole fleet.
func cooling(f *provider.Failure) (time.Duration, bool) {
	pause := coolRateLimit
	switch {
	case f.Detail == provider.DetailNeverFits: // smaller requests still pass
		return 0, false
	case f.Outcome == llm.OutcomeQuotaExhausted:
		pause = coolQuota
	case f.Outcome != llm.OutcomeRateLimited:
		return 0, false
	}
	if f.RetryAfter != nil {
		pause = *f.RetryAfter
	}
	return pause, true
}

// hurried reports whether a call of the target that begins now has too little
// time to judge the target by it. The caller's own deadline must not decide that
// alone, since it is the caller's.
func (r *run) hurried(ctx context.Context, t *Target) bool {
	usual := share(r.feature.Timeout, t, r.later())
	if t.Timeout > 0 { // which does not end the last target's call, and says what to expect of it
		usual = min(usual, t.Timeout)
	}
	return r.room(ctx, t) < max(min(shortTrial, usual), min(longTrial, usual/2))
}

// terminal is the error of a request that this failure ends.
func terminal(f *provider.Failure) *llm.Error {
	e := llm.Errorf(lookup(f.Outcome, f.Detail).code, "%s", sentence(f))
	if f.RetryAfter != nil {
		e.RetryAfterMS = f.RetryAfter.Milliseconds()
	}
	return e
}

// terminal is the error of a request that this failure ends before any of its
// text was seen. Where text of an earlier attempt was, the caller is left with
// that: it has a broken answer, whatever the target says that was to begin it
// anew, and a refusal by the second of what the first took is none by both.
func (r *run) terminal(f *provider.Failure) *llm.Error {
	if r.broken != nil {
		return r.broken
	}
	return terminal(f)
}

// sentence says in our own words what went wrong and what helps.
func sentence(f *provider.Failure) string {
	switch f.Outcome {
	case llm.OutcomeRateLimited:
		return "the provider's rate limit is reached"
	case llm.OutcomeQuotaExhausted:
		return "the provider account has no credit or quota left; an operator must act"
	case llm.OutcomeInvalidRequest:
		if f.Detail == provider.DetailBodyLimit {
			return "the request is larger than the provider takes; send less"
		}
		return "the provider refuses the request as invalid; check the tools, schema and parameters for this model"
	case llm.OutcomeContextLength:
		return "the prompt is longer than the context window of every usable model; send less"
	case llm.OutcomeAuth, llm.OutcomeNotFound:
		return "the provider refuses the worker's key, model name or route; an operator must check the configuration"
	case llm.OutcomeContentFiltered:
		return "the model or a content filter refused to answer"
	case llm.OutcomeInvalidOutput:
		return "the model's answer is empty, cut or does not fit what was asked for"
	case llm.OutcomeCancelled:
		return "the request was cancelled"
	}
	return "the provider failed: " + string(f.Outcome)
}

// nobody is the error of a request with no target left to ask.
func (r *run) nobody() error {
	if r.over != nil && len(r.attempts) == 0 {
		_ = r.fail(r.over.Err)
		return r.over
	}
	return r.fail(r.exhausted())
}

// exhausted is the error of a request whose targets are used up.
func (r *run) exhausted() *llm.Error {
	if len(r.attempts) > 0 {
		r.emit(EventFailoverExhausted, r.served)
	}
	var e *llm.Error
	switch {
	case r.broken != nil:
		e = r.broken
	case r.last != nil && r.agree():
		e = terminal(r.last)
	case len(r.attempts) > 0:
		e = llm.Errorf(llm.CodeUnavailable, "every target that admits a call failed (%d called); the last with %s", r.targetsCalled(), r.last.Outcome)
	case r.allRefusedFor(string(llm.OutcomeRateLimited)):
		e = llm.Errorf(llm.CodeRateLimited, "every target waits for its provider's rate limit")
	case r.allRefusedFor(refusedBySwitch):
		e = llm.Errorf(llm.CodeSwitchedOff, "every target of the feature is switched off by an operator")
	default:
		e = llm.Errorf(llm.CodeUnavailable, "no target admits a call now: every circuit is open")
	}
	e.RetryAfterMS = r.soonest.Milliseconds()
	return e
}

// agree reports whether every attempt failed for the same terminal reason.
func (r *run) agree() bool {
	code := lookup(r.last.Outcome, r.last.Detail).code
	for _, a := range r.attempts {
		if lookup(a.Class, "").code != code {
			return false
		}
	}
	return code != llm.CodeUnavailable
}

func (r *run) allRefusedFor(why string) bool {
	for _, no := range r.refused {
		if no != why {
			return false
		}
	}
	return len(r.refused) > 0
}

// mayReturn notes that a target may be free after d; the shortest is what the
// caller is told.
func (r *run) mayReturn(d time.Duration) {
	if d > 0 && (r.soonest == 0 || d < r.soonest) {
		r.soonest = d
	}
}

// ended says why the operation was stopped from outside.
func ended(ctx context.Context) *llm.Error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*llm.Error](cause); ok {
		return &llm.Error{Code: e.Code, Message: e.Message}
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return &llm.Error{Code: llm.CodeDeadline, Message: llm.ErrDeadline.Message}
	}
	return &llm.Error{Code: llm.CodeCancelled, Message: llm.ErrCancelled.Message}
}

// fail completes an error with what is known of the request.
func (r *run) fail(e *llm.Error) *llm.Error {
	e.Attempts, e.Degraded = r.attempts, e.Degraded || r.degraded || r.tab.degraded()
	return e
}

// succeed completes a response with what is known of the request.
func (r *run) succeed(resp *llm.Response) *llm.Response {
	t := r.served
	resp.ID, resp.Provider, resp.Model = r.req.ID, t.Provider, t.Model
	resp.ServedBy, resp.Attempts, resp.Degraded = llm.ServedByModel, r.attempts, r.degraded || r.tab.degraded()
	resp.Metadata = r.req.Metadata
	resp.Warnings = append(resp.Warnings, r.req.Warnings...)
	resp.Timing = llm.Timing{TotalMS: time.Since(r.begun).Milliseconds()}
	for _, a := range r.attempts {
		resp.CostUSD += a.CostUSD
	}
	last := r.attempts[len(r.attempts)-1]
	if last.FirstTokenMS > 0 {
		resp.Timing.FirstTokenMS = min(resp.Timing.TotalMS, resp.Timing.TotalMS-last.MS+last.FirstTokenMS)
	}
	if first := r.attempts[0]; first.Provider != t.Provider || first.Model != t.Model {
		r.emit(EventFailoverSucceeded, t)
	}
	return resp
}

// shows reports whether s is a piece of the answer.
func shows(resp *llm.Response, s string) bool {
	within := func(call llm.ToolCall) bool { return strings.Contains(call.Name+" "+call.Arguments, s) }
	return strings.Contains(resp.Content, s) || strings.Contains(resp.Reasoning, s) || slices.ContainsFunc(resp.ToolCalls, within)
}
