package chain

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// Switches gives the kill switches as they are now. degraded is true when they
// are only the last that were known.
type Switches interface {
	Current(ctx context.Context) (flags *kv.FlagSet, degraded bool)
}

// Config is what a Router needs.
type Config struct {
	Switches  Switches    // required
	Cache     AnswerCache // for llm.FallbackCached; nil keeps no answers
	Queue     Queue       // for llm.FallbackQueued and InterruptQueue; nil has no jobs
	Limiter   Limiter     // of what tenants use; nil limits nobody
	Observer  Observer    // nil hears nothing
	Followers []Follower
	Auditor   Auditor      // of features with Audit; nil hears nothing
	Log       *slog.Logger // nil logs nothing
}

// Router sends each request through the pipeline of its feature. Features may
// be replaced at any time; requests under way finish with the policy they began
// with.
type Router struct {
	env       env
	limiter   Limiter
	cache     AnswerCache
	pipelines atomic.Pointer[map[string]*pipeline]
}

var _ llm.Completer = (*Router)(nil)

// pipeline is a feature with its stages around its chain.
type pipeline struct {
	*Feature
	llm.Completer
}

// limit is the most that a request, or one try of a job, may take.
func (p *pipeline) limit(req *llm.Request) time.Duration {
	if req.Job {
		return cmp.Or(p.Jobs.Timeout, p.Timeout)
	}
	return p.Timeout
}

// NewRouter makes a Router without features.
func NewRouter(c Config) *Router {
	r := &Router{env: newEnv(c), limiter: c.Limiter, cache: c.Cache}
	r.pipelines.Store(new(map[string]*pipeline))
	return r
}

// Load replaces all features.
func (r *Router) Load(features []Feature) {
	next := make(map[string]*pipeline, len(features))
	for i := range features {
		f := &features[i]
		next[f.Name] = &pipeline{f, r.stages(f)}
	}
	r.pipelines.Store(&next)
}

// stages builds the pipeline from the inside out.
func (r *Router) stages(f *Feature) llm.Completer {
	inner := &Chain{feature: f, env: r.env}
	var c llm.Completer = inner
	if r.limiter != nil {
		c = &limited{next: inner, limiter: r.limiter, expected: &expectations{}, env: r.env}
	}
	c = &switched{next: c, switches: r.env.switches, calls: r.env.calls}
	if len(f.Fallback) > 0 {
		c = &fallback{next: c, feature: f, cache: r.cache, env: r.env}
	}
	o := &observed{next: c, env: r.env}
	if f.Audit && r.env.auditor != nil {
		o.audit = &auditing{f, r.env.auditor}
	}
	return o
}

// Features lists the names of the features, sorted.
func (r *Router) Features() []string {
	return slices.Sorted(maps.Keys(*r.pipelines.Load()))
}

// Cut stops what is under way and must stop now according to the switches.
func (r *Router) Cut(flags *kv.FlagSet) { r.env.calls.cut(flags) }

// Complete answers a request of any feature.
func (r *Router) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	p, req, err := r.route(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, p.limit(req))
	defer cancel()
	return p.Complete(ctx, req)
}

// Stream streams the answer to a request of any feature.
func (r *Router) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		p, req, err := r.route(req)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		ctx, cancel := within(ctx, p.Timeout)
		defer cancel()
		p.Stream(ctx, req)(yield)
	}
}

// within ends ctx after limit, unless it ends before that by itself.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= limit {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, llm.ErrDeadline)
}

// route finds the feature and fills in what the request leaves to it.
func (r *Router) route(req *llm.Request) (*pipeline, *llm.Request, error) {
	p, ok := (*r.pipelines.Load())[req.Feature]
	if !ok {
		return nil, nil, llm.Errorf(llm.CodeUnknownFeature, "feature %q is not configured; known are %s", req.Feature, strings.Join(r.Features(), ", "))
	}
	if s := req.JSONSchema; s != nil {
		if err := r.env.schemas.check(s.Schema); err != nil {
			return nil, nil, llm.Errorf(llm.CodeInvalidRequest, "json_schema: %w", err)
		}
	}
	filled := *req
	if filled.Class == "" {
		filled.Class = p.Class
	}
	p.classify(&filled)
	return p, &filled, nil
}
