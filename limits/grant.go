package limits

import (
	"context"
	"errors"
	"math"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
)

// Grant is what one request holds of its tenant's limits. It is not safe for
// concurrent use.
type Grant struct {
	account     *account
	parts       []part
	tokens, usd int64 // reserved so far
	degraded    bool
	settled     bool
}

var _ chain.Grant = (*Grant)(nil)

func nano(usd float64) int64 { return int64(math.Ceil(usd * NanoUSD)) }

// Degraded reports whether this worker decided alone, since JetStream was out
// of reach.
func (g *Grant) Degraded() bool { return g.degraded }

// Cover reserves what the request may have used after its next call: what it
// has used so far, and what that call may take. Its error is a
// *chain.OverLimit, or the cause of ctx's end; then what was reserved before
// still is.
func (g *Grant) Cover(ctx context.Context, u chain.Use) error {
	before, now := len(g.parts), g.account.now()
	if err := g.more(ctx, now, g.account.tokens, u.Tokens-g.tokens); err != nil {
		return err
	}
	if err := g.more(ctx, now, g.account.usd, nano(u.USD)-g.usd); err != nil {
		g.undo(before)
		return err
	}
	g.tokens, g.usd = max(g.tokens, u.Tokens), max(g.usd, nano(u.USD))
	return nil
}

// more takes n of each pool, or nothing of any.
func (g *Grant) more(ctx context.Context, now int64, pools []*pool, n int64) error {
	if n <= 0 {
		return nil
	}
	before := len(g.parts)
	for _, p := range pools {
		if err := g.take(ctx, now, p, n); err != nil {
			g.undo(before)
			return err
		}
	}
	return nil
}

func (g *Grant) take(ctx context.Context, now int64, p *pool, n int64) error {
	got, err := p.take(ctx, now, n)
	if e, is := errors.AsType[*Exceeded](err); is {
		return over(e)
	}
	if err != nil {
		return err
	}
	g.parts = append(g.parts, got)
	g.degraded = g.degraded || got.degraded
	return nil
}

// over is the error that the caller gets.
func over(e *Exceeded) *chain.OverLimit {
	code := llm.CodeRateLimited
	if e.Kind == USD {
		code = llm.CodeBudgetExhausted
	}
	out := llm.Errorf(code, "%w", e)
	out.RetryAfterMS, out.Degraded = e.RetryAfter.Milliseconds(), e.Degraded
	return &chain.OverLimit{Err: out, Limit: e.Name()}
}

// forJob leaves it to the backoff of a job when it asks for a slot again: jobs
// that all came back each second would keep the fleet busy with refusing them.
func forJob(req *llm.Request, err error) error {
	e, over := errors.AsType[*chain.OverLimit](err)
	if over && req.Job && e.Limit == string(Concurrent) {
		e.Err.RetryAfterMS = 0
	}
	return err
}

// undo gives back all parts but the first n.
func (g *Grant) undo(n int) {
	now := g.account.now()
	for _, got := range g.parts[n:] {
		got.pool.put(now, got.window, got.n)
	}
	g.parts = g.parts[:n]
}

// Settle ends the request: it books what was really used and gives back the
// rest. A request that came to no call has used nothing. Only the first Settle
// counts.
func (g *Grant) Settle(u chain.Use) {
	if g.settled {
		return
	}
	g.settled = true
	defer g.account.tenant.open.Add(-1)
	now := g.account.now()
	for _, p := range g.account.once {
		if p.Kind == Concurrent || u.Calls == 0 {
			g.settle(now, p, 0)
		}
	}
	for _, p := range g.account.tokens {
		g.settle(now, p, u.Tokens)
	}
	for _, p := range g.account.usd {
		g.settle(now, p, nano(u.USD))
	}
}

// settle makes what the request holds of a pool the used amount. What is too
// much goes back to the windows it was taken from, the latest first.
func (g *Grant) settle(now int64, p *pool, used int64) {
	for _, got := range g.parts {
		if got.pool == p {
			used -= got.n
		}
	}
	if used > 0 {
		p.charge(now, used)
	}
	for i := len(g.parts) - 1; i >= 0 && used < 0; i-- {
		if got := g.parts[i]; got.pool == p {
			back := min(got.n, -used)
			p.put(now, got.window, back)
			used += back
		}
	}
}
