package chain_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// world is a random fleet of targets under random data rules, with every path
// on by which a request could reach a provider. Its fakes tell the world of each
// call as it begins.
type world struct {
	*testing.T
	random  *rand.Rand
	router  *chain.Router
	group   *breaker.Group
	feature chain.Feature
	cache   map[string][]byte
	jobs    []*llm.Request // handed over and not yet run
	calls   map[string]int // by path, so that no path is idle
	due     string         // the class that the request under way must be treated as
}

var paths = []string{"first", "retry", "failover", "probe", "restart", "job", "stream", "cached", "raised", "denied", "unknown", "queued"}

func newWorld(t *testing.T, r *rand.Rand, calls map[string]int) *world {
	t.Helper()
	group, err := breaker.New(breaker.Config{})
	require.NoError(t, err)
	w := &world{T: t, random: r, group: group, cache: map[string][]byte{}, calls: calls}
	w.router = chain.NewRouter(chain.Config{Switches: &switches{}, Cache: w, Queue: w})
	return w
}

func (w *world) oneIn(n int) bool { return w.random.IntN(n) == 0 }

func (w *world) some(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(string) bool { return w.oneIn(2) })
}

func pick[T any](w *world, list ...T) T { return list[w.random.IntN(len(list))] }

// govern makes a new policy and puts it in force, as a push of the
// configuration does.
func (w *world) govern() {
	f := chain.Feature{Name: "f", Class: llm.ClassInteractive, Timeout: time.Minute, DataClasses: classes,
		DataClass: pick(w, "", "public", "internal", "restricted"), MinDataClass: pick(w, "", "", "internal", "confidential"),
		OnInvalidOutput: pick(w, chain.FailOver, chain.Fail), OnMisconfigured: chain.FailOver, OnRefusal: chain.FailOver,
		OnInterrupt: pick(w, chain.InterruptRestart, chain.InterruptQueue, chain.InterruptError),
		OnRateLimit: pick(w, chain.RateLimitFailOver, chain.RateLimitWait),
		Fallback:    pick(w, []llm.FallbackMode{llm.FallbackCached, llm.FallbackQueued}, []llm.FallbackMode{llm.FallbackQueued}, []llm.FallbackMode{llm.FallbackCached})}
	if w.oneIn(3) {
		f.Regions = []string{"eu", "ch"}[:1+w.random.IntN(2)]
	}
	for i := range 1 + w.random.IntN(5) {
		f.Targets = append(f.Targets, w.target(string(rune('a'+i))))
	}
	w.feature = f
	w.router.Load([]chain.Feature{f})
}

func (w *world) target(name string) chain.Target {
	can := able
	can.ApprovedFor, can.Regions = w.some(classes), w.some([]string{"eu", "ch", "us"})
	can.Streaming, can.JSONSchema = !w.oneIn(6), !w.oneIn(6)
	settings := breaker.Settings{Threshold: 1 + w.random.IntN(3), CoolDown: 2 * time.Second, ProbeTimeout: 10 * time.Second}
	return chain.Target{Provider: name, Model: "m", Can: can, Attempts: 1 + w.random.IntN(3),
		Breaker: w.group.Breaker(subjects.BreakerKey(name, "m"), settings), Completer: fake.Func(func(_ int, req *llm.Request) fake.Step { return w.called(name, can.ApprovedFor, can.Regions, req) })}
}

// called judges a call by nothing but what was declared, and goes on at random.
func (w *world) called(name string, approved, regions []string, req *llm.Request) fake.Step {
	require.Contains(w, approved, w.due, "target %s, policy %+v", name, w.feature)
	require.Equal(w, w.due, req.DataClass)
	if len(w.feature.Regions) > 0 {
		require.NotEmpty(w, regions)
		require.Subset(w, w.feature.Regions, regions)
	}
	switch {
	case w.oneIn(2):
		return fake.Answer("answer to "+w.due, ", and more")
	case w.oneIn(3): // breaks off after text was shown
		return fake.Step{Pieces: []string{"answer to " + w.due}, Err: fake.FailsWith(llm.OutcomeUnavailable).Err}
	}
	return fake.Fails(new(randomFailures[w.random.IntN(len(randomFailures))]))
}

// settled is the rule in the plainest words.
func settled(f *chain.Feature, asked string) string {
	class := classes[len(classes)-1]
	for _, given := range []string{f.MinDataClass, f.DataClass, asked} {
		if given != "" {
			class = given
		}
	}
	if !slices.Contains(classes, class) {
		return "none, so that no target is approved for it"
	}
	return classes[max(slices.Index(classes, class), slices.Index(classes, f.MinDataClass))]
}

// request has one of few prompts, so that the cache is of use and could mix
// classes up.
func (w *world) request() *llm.Request {
	req := &llm.Request{ID: "r", Feature: "f", DataClass: pick(w, append(slices.Clone(classes), "", "secret")...), NoFailover: w.oneIn(10),
		Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(pick(w, "one", "two"))}}}
	if w.oneIn(4) {
		req.Class = llm.ClassBackground
	}
	return req
}

// run makes a request and judges its answer.
func (w *world) run(req *llm.Request) {
	do := pick(w, complete, stream)
	if req.Job {
		do = complete
	}
	w.due = settled(&w.feature, req.DataClass)
	got := do(w.Context(), w.router, req)
	w.count(req, got)
	text := got.text()
	if got.resp != nil && got.resp.Content != "" {
		text = got.resp.Content
	}
	if text == "" {
		return
	}
	require.True(w, strings.HasPrefix(text, "answer to "+w.due), "%q for class %s", text, w.due)
}

// count notes which paths a request went.
func (w *world) count(req *llm.Request, got outcome) {
	note := func(when bool, path string) {
		if when {
			w.calls[path]++
		}
	}
	var attempts []llm.Attempt
	if got.err != nil {
		attempts = got.err.Attempts
		note(got.err.Code == llm.CodePolicyDenied, "denied")
		note(got.err.Code == llm.CodeInvalidRequest && req.DataClass == "secret", "unknown")
		require.Equal(w, req.DataClass == "secret", strings.HasPrefix(got.err.Message, "data_class: must be"))
	} else {
		attempts = got.resp.Attempts
		note(got.resp.Fallback == llm.FallbackCached, "cached")
		note(slices.ContainsFunc(got.resp.Warnings, func(s string) bool { return strings.Contains(s, "was raised to") }), "raised")
	}
	starts := 0
	for _, f := range got.frames {
		if f.Type == llm.FrameStart {
			starts++
		}
	}
	note(len(got.frames) > 0, "stream")
	note(starts > 1, "restart")
	note(len(attempts) > 0, "first")
	note(len(attempts) > 0 && req.Job, "job")
	for i := range attempts {
		note(attempts[i].Breaker == string(breaker.HalfOpen), "probe")
		note(i > 0 && attempts[i].Provider == attempts[i-1].Provider, "retry")
		note(i > 0 && attempts[i].Provider != attempts[i-1].Provider, "failover")
	}
}

// Keep, Find and Enqueue are the cache and the queue of the world.
func (w *world) Keep(tenant, feature, key string, answer []byte) {
	w.cache[tenant+feature+key] = answer
}

func (w *world) Find(_ context.Context, tenant, feature, key string) ([]byte, error) {
	if answer, ok := w.cache[tenant+feature+key]; ok {
		return answer, nil
	}
	return nil, errors.New("not kept")
}

func (w *world) Enqueue(_ context.Context, req *llm.Request) (*llm.Job, error) {
	w.calls["queued"]++
	require.Equal(w, w.due, req.DataClass, "a job keeps the class of its request")
	later := *req
	later.Stream, later.Class, later.Job = false, llm.ClassBackground, true
	w.jobs = append(w.jobs, &later)
	return &llm.Job{ID: "j"}, nil
}

// Any policy, any requests, every path by which one could reach a provider, and
// policies that change under jobs: not one call goes where it may not, and no
// answer crosses classes.
func TestNoDataReachesATargetThatMayNotSeeIt(t *testing.T) {
	const worlds = 10_000
	calls := map[string]int{}
	r := rand.New(rand.NewPCG(3, 4))
	synctest.Test(t, func(t *testing.T) {
		for range worlds {
			w := newWorld(t, r, calls)
			w.govern()
			for range 6 {
				w.run(w.request())
				if w.oneIn(3) {
					pass(3 * time.Second) // so that open breakers are probed
				}
			}
			if w.oneIn(2) {
				w.govern()
			}
			for _, job := range w.jobs {
				w.run(job)
			}
		}
	})
	for _, path := range paths {
		require.Greater(t, calls[path], 100, "%s was hardly tried: %v", path, calls)
	}
	t.Log(calls)
}
