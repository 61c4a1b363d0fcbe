package chain

import (
	"context"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// Chain asks the targets of one feature in order. It is the innermost stage.
type Chain struct {
	feature *Feature
	env     env
	tab     *tab // of the one request that this copy serves; nil keeps none
}

var _ llm.Completer = (*Chain)(nil)

// env is what all chains of a process share.
type env struct {
	switches  Switches
	queue     Queue
	observer  Observer
	followers followers
	auditor   Auditor
	schemas   *schemas
	calls     *calls // in flight, so that an "off now" can reach them
	log       *slog.Logger
	random    func() float64 // uniform in [0, 1)
}

func newEnv(c Config) env {
	e := env{switches: c.Switches, queue: c.Queue, observer: c.Observer, followers: c.Followers, auditor: c.Auditor, schemas: newSchemas(), calls: newCalls(c.Switches), log: c.Log, random: rand.Float64}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.observer == nil {
		e.observer = silent{}
	}
	return e
}

// Complete returns the first valid answer of a target. Its error is always an
// *llm.Error that carries the attempts.
func (c *Chain) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	r, err := c.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	return r.loop(ctx, r.complete)
}

// Stream yields a start frame and the answer of the first target that shows
// visible text. Before that, failures move on as in Complete; after it,
// Feature.OnInterrupt decides.
func (c *Chain) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		r, err := c.begin(ctx, req)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		out := &outlet{yield: yield}
		resp, err := r.loop(ctx, func(ctx context.Context, t *Target) (*llm.Response, error) {
			return r.stream(ctx, t, out)
		})
		switch {
		case out.gone:
		case err != nil:
			yield(llm.Frame{}, err)
		default:
			yield(llm.Frame{Type: llm.FrameEnd, Attempt: len(r.attempts), Response: resp}, nil)
		}
	}
}

// begin picks the targets that can serve the request at all.
func (c *Chain) begin(ctx context.Context, req *llm.Request) (*run, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	notes := trailOf(ctx)
	targets, err := c.feature.capable(req, notes)
	if err != nil {
		return nil, err
	}
	flags, degraded := c.env.switches.Current(ctx)
	r := &run{Chain: c, req: req, flags: flags, degraded: degraded, queue: targets, notes: notes, begun: time.Now()}
	r.attempts, r.called = r.one.attempts[:0], r.one.called[:0]
	r.failover = !req.NoFailover && !flags.FailoverOff(req.Feature, req.Tenant)
	if notes != nil {
		notes.failover = r.failover
	}
	return r, nil
}
