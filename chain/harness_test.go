package chain_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// able declares everything.
var able = provider.Capabilities{Tools: true, ToolChoice: true, Vision: true, ImageURLs: true, JSONSchema: true, Streaming: true, Seed: true,
	ContextWindow: 1000, MaxOutputTokens: 100}

// rig is a router with one feature, f, over scripted providers a, b, c …, each
// with a breaker of this process alone.
type rig struct {
	*chain.Router
	feature  chain.Feature
	switches *switches
	events   *events
	breakers *breaker.Group
	fakes    map[string]*fake.Provider
}

// newRig makes a feature over the fakes, in order. tune may change it first.
func newRig(t *testing.T, tune func(*chain.Feature), fakes ...*fake.Provider) *rig {
	t.Helper()
	group, err := breaker.New(breaker.Config{})
	require.NoError(t, err)
	r := &rig{breakers: group, switches: &switches{}, events: &events{}, fakes: make(map[string]*fake.Provider)}
	r.feature = chain.Feature{Name: "f", Class: llm.ClassInteractive, Timeout: 10 * time.Second}
	for i, f := range fakes {
		name := string(rune('a' + i))
		r.fakes[name] = f
		r.feature.Targets = append(r.feature.Targets, chain.Target{
			Provider: name, Model: "m", Completer: f, Can: able, Attempts: 1,
			Breaker: group.Breaker(subjects.BreakerKey(name, "m"), breaker.Settings{}),
		})
	}
	if tune != nil {
		tune(&r.feature)
	}
	r.Router = chain.NewRouter(chain.Config{Switches: r.switches, Observer: r.events})
	r.Load([]chain.Feature{r.feature})
	return r
}

func (r *rig) counts() map[string]int {
	n := make(map[string]int)
	for name, f := range r.fakes {
		n[name] = f.Count()
	}
	return n
}

func (r *rig) state(name string) breaker.State {
	for _, s := range r.breakers.Snapshot() {
		if s.Key == subjects.BreakerKey(name, "m") {
			return s.State
		}
	}
	return breaker.Closed
}

func ask() *llm.Request {
	return &llm.Request{ID: "r1", Feature: "f", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}
}

// outcome is what came of a request, streamed or not.
type outcome struct {
	resp   *llm.Response
	err    *llm.Error
	frames []llm.Frame
	took   time.Duration
}

func (o outcome) text() string {
	var b strings.Builder
	for _, f := range o.frames {
		if f.Type == llm.FrameStart {
			b.Reset()
		}
		b.WriteString(f.Text)
	}
	return b.String()
}

func complete(ctx context.Context, c llm.Completer, req *llm.Request) (o outcome) {
	began := time.Now()
	resp, err := c.Complete(ctx, req)
	o.resp, o.took = resp, time.Since(began)
	if err != nil {
		o.err, _ = errors.AsType[*llm.Error](err)
	}
	return o
}

func stream(ctx context.Context, c llm.Completer, req *llm.Request) (o outcome) {
	began := time.Now()
	streamed := *req
	streamed.Stream = true
	for f, err := range c.Stream(ctx, &streamed) {
		if err != nil {
			o.err, _ = errors.AsType[*llm.Error](err)
			break
		}
		o.frames = append(o.frames, f)
		if f.Type == llm.FrameEnd {
			o.resp = f.Response
		}
	}
	o.took = time.Since(began)
	return o
}

// both names the two ways to ask.
var both = map[string]func(context.Context, llm.Completer, *llm.Request) outcome{"complete": complete, "stream": stream}

// switches is a fixed set of flags that a test may change.
type switches struct {
	mu       sync.Mutex
	flags    *kv.FlagSet
	degraded bool
}

func (s *switches) set(t *testing.T, values map[string]string) *kv.FlagSet {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flags = kv.ParseFlags(values)
	return s.flags
}

func (s *switches) Current(context.Context) (*kv.FlagSet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flags == nil {
		s.flags = kv.ParseFlags(nil)
	}
	return s.flags, s.degraded
}

// events remembers what was observed.
type events struct {
	mu   sync.Mutex
	list []chain.Event
}

func (e *events) Observe(event chain.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

func (e *events) names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, event := range e.list {
		names = append(names, event.Name)
	}
	return names
}

// pass lets fake time go by.
func pass(d time.Duration) { <-time.After(d) }
