package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/limits"
)

// settleTime is how long the bucket must be quiet before a change of it is
// applied, so that the keys of one push are taken together.
const settleTime = 50 * time.Millisecond

// source is where a process's own configuration comes from.
type source struct {
	path  string // of the file; empty: none
	data  []byte // of the file
	parts config.Parts
}

// newSource reads the file, or makes the default of what the environment has.
// A bad file is refused here, before anything is started. text, if there is
// any, stands for the file.
func newSource(e *Environment, text []byte) (source, error) {
	path := e.Config
	switch {
	case text != nil:
		path = "configuration"
	case path == "":
		_, parts, err := config.Default(e.found())
		return source{parts: parts}, err
	default:
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return source{}, fmt.Errorf("LLMBUS_CONFIG: %w", err)
		}
	}
	_, parts, err := config.Parse(path, text)
	return source{path, text, parts}, err
}

// policy keeps the router at what the bucket says.
type policy struct {
	source   source
	bucket   *kv.Bucket
	mirror   *kv.Mirror
	router   *chain.Router
	breakers *breaker.Group
	limiter  *limits.Limiter
	adapters *adapters
	log      *slog.Logger
	changed  chan struct{}
	applied  func() // told after a configuration came into force

	inForce atomic.Pointer[config.Config] // read from parts
	refused atomic.Pointer[[]string]      // why parts of the bucket are not in force

	mu    sync.Mutex   // held while a configuration is applied
	seen  config.Parts // what the bucket held when it was last looked at; nil before begin
	parts config.Parts // in force
}

func newPolicy(w *worker, src source, bucket *kv.Bucket) (*policy, error) {
	p := &policy{source: src, bucket: bucket, router: w.router, breakers: w.breakers, limiter: w.limiter, adapters: newAdapters(w.env), log: w.log, changed: make(chan struct{}, 1), applied: w.announce}
	var err error
	p.mirror, err = kv.NewMirror(bucket, kv.MirrorConfig{Log: w.log, OnChange: func([]kv.Change) { p.kick() }})
	return p, err
}

func (p *policy) kick() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// begin puts the file into the bucket, if it is new there, and applies what the
// bucket holds. The mirror must run.
func (p *policy) begin(ctx context.Context) error {
	select {
	case <-p.mirror.Ready():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.source.path != "" {
		changed, err := config.PushFile(ctx, p.bucket, config.PartsOf(p.mirror.All()), p.source.parts, p.source.data)
		if err != nil {
			return fmt.Errorf("store %s: %w", p.source.path, err)
		}
		if len(changed) > 0 {
			p.log.Info("stored the configuration file", "file", p.source.path, "changed", changed)
		}
		if err := p.mirror.Refresh(ctx); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if problems := p.apply(); len(p.inForce.Load().Features) == 0 {
		return fmt.Errorf("no feature can be served:\n%w", &config.Error{Problems: problems})
	}
	return nil
}

// follow applies what changes until ctx ends. It does not apply anything before
// begin has.
func (p *policy) follow(ctx context.Context) error {
	var mirroring sync.WaitGroup
	defer mirroring.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	mirroring.Go(func() { stop(p.mirror.Run(ctx)) })
	quiet := time.NewTimer(settleTime)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-p.changed:
			quiet.Reset(settleTime)
		case <-quiet.C:
			p.again()
		case <-ctx.Done():
			return ignoreCancel(context.Cause(ctx))
		}
	}
}

// again applies what has changed since begin.
func (p *policy) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen != nil && !maps.Equal(p.seen, config.PartsOf(p.mirror.All())) {
		p.apply()
	}
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// apply makes the newest valid configuration the one in force, and returns what
// of it was refused. Requests under way finish with the old one.
func (p *policy) apply() []config.Problem {
	next := config.PartsOf(p.mirror.All())
	p.seen = next
	if next.Empty() {
		next = p.source.parts
	}
	cfg, parts, problems := config.Adopt(p.parts, next, p.adapters.usable)
	var refused []string
	for _, problem := range problems {
		refused = append(refused, problem.String())
	}
	p.adapters.settle(cfg)
	p.parts = parts
	p.limitTenants(cfg)
	p.router.Load(p.features(cfg))
	p.refused.Store(&refused)
	p.inForce.Store(cfg)
	for _, problem := range problems { // said once the status shows it, too
		p.log.Error("a part of the configuration is refused; what was in force before stays", "part", problem.Source, "reason", problem.String())
	}
	p.log.Info("configuration applied", "features", p.router.Features(), "refused", len(problems))
	p.applied()
	return problems
}

// features completes the features with what this process has for them.
func (p *policy) features(cfg *config.Config) []chain.Feature {
	guard(cfg, p.breakers)
	for i := range cfg.Features {
		targets := cfg.Features[i].Targets
		for j := range targets {
			targets[j].Completer = p.adapters.inUse[targets[j].Provider].Completer
		}
	}
	return cfg.Features
}

// guard gives every target its breaker.
func guard(cfg *config.Config, breakers *breaker.Group) {
	for i := range cfg.Features {
		targets := cfg.Features[i].Targets
		for j := range targets {
			t := &targets[j]
			settings := cfg.Provider(t.Provider).Breaker
			t.Breaker = breakers.Breaker(settings.Key(t.Provider, t.Model), settings.Settings)
		}
	}
}
