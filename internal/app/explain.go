package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// Explanation says how a request would be routed now.
type Explanation struct {
	chain.Decision
	Targets   []ExplainedTarget  `json:"targets"`
	Fallbacks []llm.FallbackMode `json:"fallbacks,omitempty"` // tried in order if no target serves
}

// ExplainedTarget is a target with its price in US dollars per million tokens.
type ExplainedTarget struct {
	chain.Candidate
	Price     chain.Price `json:"price"`
	PriceFrom string      `json:"price_from"`
}

// Explain does what a worker that joined now would do with a request, up to the
// first call: it reads configuration, switches and breakers from KV and takes
// the same way through the chain. Nothing is written and nobody is asked. Keys
// and limits of the workers are not known here.
func Explain(ctx context.Context, env *Environment, nc *nats.Conn, req *llm.Request) (*Explanation, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	buckets, err := kv.Bind(ctx, js)
	if err != nil {
		return nil, err
	}
	cfg, refused, err := inForce(ctx, env, buckets.Features)
	if err != nil {
		return nil, err
	}
	o := &observer{}
	if o.flags, err = kv.NewFlags(buckets.Flags, kv.FlagsConfig{}); err != nil {
		return nil, err
	}
	if o.breakers, err = breaker.New(breaker.Config{Conn: nc, Buckets: buckets}); err != nil {
		return nil, err
	}
	defer o.run(ctx)()
	if err := o.ready(ctx); err != nil {
		return nil, err
	}
	guard(cfg, o.breakers)
	router := chain.NewRouter(chain.Config{Switches: o.flags})
	router.Load(cfg.Features)
	d, err := router.Explain(ctx, req)
	if err != nil {
		return nil, errors.Join(err, refused)
	}
	return explanation(cfg, d), nil
}

// inForce is the configuration that a worker without a file would take. refused
// is what it would leave out, nil if nothing.
func inForce(ctx context.Context, env *Environment, bucket *kv.Bucket) (cfg *config.Config, refused, err error) {
	parts, err := config.Load(ctx, bucket)
	if err != nil {
		return nil, nil, err
	}
	if parts.Empty() {
		src, err := newSource(env, nil)
		if err != nil {
			return nil, nil, err
		}
		parts = src.parts
	}
	cfg, _, problems := config.Adopt(nil, parts, nil)
	if len(problems) > 0 {
		refused = &config.Error{Problems: problems}
	}
	return cfg, refused, nil
}

// observer follows switches and breakers as a worker does.
type observer struct {
	flags    *kv.Flags
	breakers *breaker.Group
}

// run follows until end is called.
func (o *observer) run(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, part := range []func(context.Context) error{o.flags.Run, o.breakers.Run} {
		running.Go(func() { _ = part(ctx) }) // a closed connection shows in ready
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func (o *observer) ready(ctx context.Context) error {
	for _, known := range []<-chan struct{}{o.flags.Ready(), o.breakers.Ready()} {
		select {
		case <-known:
		case <-ctx.Done():
			return fmt.Errorf("read switches and breakers: %w", context.Cause(ctx))
		}
	}
	return nil
}

func explanation(cfg *config.Config, d chain.Decision) *Explanation {
	e := &Explanation{Decision: d, Targets: []ExplainedTarget{}}
	for _, c := range d.Targets {
		price, from := cfg.Provider(c.Provider).Price(c.Model)
		e.Targets = append(e.Targets, ExplainedTarget{c, price, from.String()})
	}
	for i := range cfg.Features {
		if cfg.Features[i].Name == d.Feature {
			e.Fallbacks = cfg.Features[i].Fallback
		}
	}
	return e
}
