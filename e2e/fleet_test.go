package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/once"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

var able = provider.Capabilities{Tools: true, ToolChoice: true, JSONSchema: true, Streaming: true}

// worker is one member of a fleet, wired as internal/app does, but for its
// providers.
type worker struct {
	conn     *nats.Conn
	flags    *kv.Flags
	breakers *breaker.Group
	router   *chain.Router
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// plan is what the workers of a fleet have in common: one feature, f, over the
// providers in order.
type plan struct {
	dial      func() *nats.Conn
	providers []*fake.Provider
	feature   func(*chain.Feature)
	breaker   breaker.Settings
	slots     int
	reread    time.Duration // of flags and breakers
	once      func(*once.Config)
	bus       func(*bus.Config)
}

func (p plan) start(t testing.TB, name string) *worker {
	t.Helper()
	w := &worker{conn: p.dial()}
	js, err := jetstream.New(w.conn)
	require.NoError(t, err)
	buckets, err := kv.Open(t.Context(), js, kv.Options{})
	require.NoError(t, err)
	w.flags, err = kv.NewFlags(buckets.Flags, kv.FlagsConfig{Interval: p.reread})
	require.NoError(t, err)
	w.breakers, err = breaker.New(breaker.Config{Conn: w.conn, Buckets: buckets, Worker: name, Interval: p.reread})
	require.NoError(t, err)
	w.router = chain.NewRouter(chain.Config{Switches: w.flags})
	w.router.Load([]chain.Feature{p.policy(w.breakers)})
	sharing := once.Config{Conn: w.conn, Requests: buckets.Requests, Next: w.router, Switches: w.flags, Worker: name}
	if p.once != nil {
		p.once(&sharing)
	}
	keyed, err := once.New(sharing)
	require.NoError(t, err)
	config := bus.Config{Conn: w.conn, Completer: keyed, Slots: p.slots, Grace: 5 * time.Second}
	if p.bus != nil {
		p.bus(&config)
	}
	served, err := bus.New(config)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())
	parts, stopParts := context.WithCancel(context.Background())
	w.stop = cancel
	w.done.Go(func() { _ = w.flags.Run(parts) })
	w.done.Go(func() { _ = w.breakers.Run(parts) })
	w.done.Go(func() { _ = keyed.Run(parts) })
	w.done.Go(func() {
		defer stopParts()
		_ = served.Run(ctx)
	})
	<-w.flags.Ready()
	require.Eventually(t, func() bool { return served.State() == bus.Joined && !w.breakers.Degraded() }, 10*time.Second, 5*time.Millisecond)
	return w
}

func (p plan) policy(group *breaker.Group) chain.Feature {
	f := chain.Feature{Name: "f", Class: llm.ClassInteractive, Timeout: 30 * time.Second}
	for i, c := range p.providers {
		name := string(rune('a' + i))
		f.Targets = append(f.Targets, chain.Target{Provider: name, Model: "m", Completer: c, Can: able, Attempts: 1, Timeout: 2 * time.Second,
			Breaker: group.Breaker(subjects.BreakerKey(name, "m"), p.breaker)})
	}
	if p.feature != nil {
		p.feature(&f)
	}
	return f
}

// halt stops the worker as SIGTERM would and waits for its end.
func (w *worker) halt() {
	w.stop()
	w.done.Wait()
	w.conn.Close()
}

func (w *worker) state(key string) breaker.State {
	for _, s := range w.breakers.Snapshot() {
		if s.Key == key {
			return s.State
		}
	}
	return breaker.Closed
}

// fleet is n workers and a caller that uses nothing but a NATS connection.
type fleet struct {
	workers []*worker
	caller  *nats.Conn
}

func startFleet(t testing.TB, n int, p plan) *fleet {
	t.Helper()
	f := &fleet{caller: p.dial()}
	for i := range n {
		f.workers = append(f.workers, p.start(t, fmt.Sprint("worker-", i)))
	}
	return f
}

func (f *fleet) halt() {
	for _, w := range f.workers {
		w.halt()
	}
	f.caller.Close()
}

// reply is a Response or an error, as a caller in any language reads it.
type reply struct {
	llm.Response
	Error *llm.Error `json:"error"`
}

func ask(ctx context.Context, nc *nats.Conn, payload string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a request without an end would stop a bubble for ever
	defer cancel()
	var r reply
	msg, err := nc.RequestWithContext(ctx, subjects.Complete("f"), []byte(payload))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(msg.Data, &r)
}

const hello = `{"prompt":"hello"}`
