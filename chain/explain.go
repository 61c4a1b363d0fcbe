package chain

import (
	"context"

	"github.com/llmbus/llmbus/llm"
)

// Explain says how a request would be routed now. It goes the way of a request
// up to the first call and then looks at what breakers and switches would say to
// each further target; it asks no provider and takes no lease. A request that
// would be refused has a Code and a Reason. The error is one of a request that
// reaches no feature.
func (r *Router) Explain(ctx context.Context, req *llm.Request) (Decision, error) {
	p, req, err := r.route(req)
	if err != nil {
		return Decision{}, err
	}
	ctx, notes := blaze(ctx, p.Feature)
	c := &Chain{feature: p.Feature, env: r.env}
	degraded, refused := c.foresee(ctx, req, notes)
	d := p.decision(req, notes)
	d.Degraded = degraded
	if refused != nil {
		d.Code, d.Reason = refused.Code, refused.Message
	}
	return d, nil
}

// foresee gives each target that would be asked its turn.
func (c *Chain) foresee(ctx context.Context, req *llm.Request, notes *trail) (degraded bool, refused *llm.Error) {
	if err := (&switched{switches: c.env.switches}).check(ctx, req); err != nil {
		e := asError(err)
		return e.Degraded, e
	}
	r, err := c.begin(ctx, req)
	if err != nil {
		return false, asError(err)
	}
	for _, t := range r.queue {
		if r.switchedOff(t) {
			continue
		}
		probe, err := t.Breaker.Check()
		switch {
		case err != nil:
			r.passOver(t, err)
		case r.failover || notes.turns == 0:
			notes.foreseen(t, probe)
		}
	}
	if notes.turns == 0 {
		return r.degraded, r.exhausted()
	}
	return r.degraded, nil
}
