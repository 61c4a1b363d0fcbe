package chain

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// EventLimitExceeded tells of a request that did not fit a limit of its tenant.
const EventLimitExceeded = "limit_exceeded"

// Limiter keeps tenants within what they may use.
type Limiter interface {
	// Admit takes the request's place among its tenant's. Its error is an
	// *OverLimit, and then nothing was taken, or the cause of ctx's end. A nil
	// Grant means that no limit applies.
	Admit(ctx context.Context, req *llm.Request) (Grant, error)
}

// Grant is what one request holds of its tenant's limits. Only the request's
// own goroutine calls it.
type Grant interface {
	// Cover reserves what the request may have used in all after its next call.
	// Its error is as Admit's; what was reserved before still is.
	Cover(ctx context.Context, u Use) error
	// Settle ends the request with what it has used. It must not block.
	Settle(u Use)
	// Degraded reports whether this worker decided without the others.
	Degraded() bool
}

// Use is what a request takes of its tenant's limits.
type Use struct {
	Calls  int // of targets
	Tokens int64
	USD    float64
}

// OverLimit is the error of a request that does not fit a limit. It is told from
// a provider's own limit, since no substitute may hide it.
type OverLimit struct {
	Err   *llm.Error
	Limit string // its name, such as tokens_per_minute
}

// limit is its name, none where nothing was over.
func (e *OverLimit) limit() string {
	if e == nil {
		return ""
	}
	return e.Limit
}

func (e *OverLimit) Error() string { return e.Err.Error() }

// Unwrap returns the error that the caller gets.
func (e *OverLimit) Unwrap() error { return e.Err }

// limited admits requests within their tenant's limits.
type limited struct {
	next     *Chain
	limiter  Limiter
	expected *expectations
	env      env
}

func (s *limited) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	next, tab, err := s.admit(ctx, req)
	if err != nil {
		return nil, s.refuse(ctx, req, err)
	}
	defer tab.settle()
	resp, err := next.Complete(ctx, req)
	return resp, s.refuse(ctx, req, err)
}

func (s *limited) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		next, tab, err := s.admit(ctx, req)
		if err != nil {
			yield(llm.Frame{}, s.refuse(ctx, req, err))
			return
		}
		defer tab.settle()
		for f, err := range next.Stream(ctx, req) {
			if !yield(f, s.refuse(ctx, req, err)) {
				return
			}
		}
	}
}

// admit returns the chain as this request goes through it.
func (s *limited) admit(ctx context.Context, req *llm.Request) (*Chain, *tab, error) {
	grant, err := s.limiter.Admit(ctx, req)
	if err != nil || grant == nil {
		return s.next, nil, err
	}
	next := *s.next
	next.tab = &tab{grant: grant, expected: s.expected.of(req.Tenant)}
	return &next, next.tab, nil
}

// refuse tells of a limit that was exceeded, and names what else ended the wait.
func (s *limited) refuse(ctx context.Context, req *llm.Request, err error) error {
	if err == nil {
		return nil
	}
	over, is := errors.AsType[*OverLimit](err)
	if is {
		s.env.observer.Observe(Event{Name: EventLimitExceeded, Time: time.Now(), RequestID: req.ID, Feature: req.Feature,
			Tenant: hashTenant(req.Tenant), Code: over.Err.Code, Limit: over.Limit})
		return err
	}
	if _, named := errors.AsType[*llm.Error](err); !named && ctx.Err() != nil {
		return ended(ctx)
	}
	return err
}

// tab is what one request has used so far. A nil tab keeps no account.
type tab struct {
	grant    Grant
	expected *expectation
	prompt   int64 // tokens that it is expected to be of
	used     Use
}

// cover reserves what a call of the target may use.
func (b *tab) cover(ctx context.Context, req *llm.Request, t *Target) error {
	if b == nil {
		return nil
	}
	b.prompt = promptTokens(req)
	u := b.expected.call(req, t, b.prompt)
	return b.grant.Cover(ctx, Use{Calls: b.used.Calls + 1, Tokens: b.used.Tokens + value(u.InputTokens) + value(u.OutputTokens), USD: b.used.USD + t.Price.of(u)})
}

// called books a call that was made and priced.
func (b *tab) called(a *llm.Attempt) {
	if b == nil {
		return
	}
	b.used.Calls++
	b.used.USD += a.CostUSD
	if a.Usage != nil {
		b.used.Tokens += value(a.Usage.InputTokens) + value(a.Usage.OutputTokens)
		b.expected.saw(b.prompt, a.Usage)
	}
}

func (b *tab) settle() {
	if b != nil {
		b.grant.Settle(b.used)
	}
}

func (b *tab) degraded() bool { return b != nil && b.grant.Degraded() }
