package breaker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

const key = "openai.gpt"

// fleet is a number of workers on one server, each with one breaker of the
// same key. It lives in a bubble.
type fleet struct {
	t        *testing.T
	srv      *server.Server
	nc       *nats.Conn // of the observer
	buckets  *kv.Buckets
	groups   []*breaker.Group
	breakers []*breaker.Breaker
	changes  []func() []breaker.Change
	stops    []func()
	messages func() []string // sent to the buckets
}

func newFleet(t *testing.T, n int, s breaker.Settings) *fleet {
	t.Helper()
	f := &fleet{t: t, srv: natstest.Server(t)}
	f.nc = natstest.Connect(t, f.srv)
	f.buckets = open(t, f.nc)
	f.messages = f.listen("$KV.>")
	for range n {
		f.add(s)
	}
	return f
}

func open(t *testing.T, nc *nats.Conn) *kv.Buckets {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	buckets, err := kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	return buckets
}

// add starts a worker and waits until it follows the bucket.
func (f *fleet) add(s breaker.Settings) int {
	f.t.Helper()
	nc := natstest.Connect(f.t, f.srv)
	g, changes := start(f.t, nc, open(f.t, nc), &f.stops)
	f.groups = append(f.groups, g)
	f.changes = append(f.changes, changes)
	f.breakers = append(f.breakers, g.Breaker(key, s))
	<-g.Ready()
	require.False(f.t, g.Degraded())
	return len(f.groups) - 1
}

func start(t testing.TB, nc *nats.Conn, buckets *kv.Buckets, stops *[]func()) (*breaker.Group, func() []breaker.Change) {
	t.Helper()
	var changes list[breaker.Change]
	g, err := breaker.New(breaker.Config{Conn: nc, Buckets: buckets, OnChange: changes.add})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	*stops = append(*stops, stop)
	return g, changes.all
}

func (f *fleet) stop(i int) { f.stops[i]() }

func fail(t testing.TB, b *breaker.Breaker) {
	t.Helper()
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
}

// fail makes one call of a worker fail and waits for the fleet to settle.
func (f *fleet) fail(i int) {
	f.t.Helper()
	fail(f.t, f.breakers[i])
	synctest.Wait()
}

// probe waits for the cool-down and takes the right to probe.
func (f *fleet) probe(i int) breaker.Permit {
	f.t.Helper()
	elapse(f.untilProbe())
	p, err := f.breakers[i].Acquire(f.t.Context())
	require.NoError(f.t, err)
	require.True(f.t, p.Probe())
	synctest.Wait()
	return p
}

// untilProbe is the time until every worker may try to probe.
func (f *fleet) untilProbe() time.Duration {
	var longest time.Duration
	for _, g := range f.groups {
		longest = max(longest, time.Duration(g.Snapshot()[0].RetryMS+1)*time.Millisecond)
	}
	return longest
}

// settled waits and requires that all workers agree.
func (f *fleet) settled(want breaker.State) {
	f.t.Helper()
	elapse(300 * time.Millisecond)
	synctest.Wait()
	generation := f.groups[0].Snapshot()[0].Generation
	for i, g := range f.groups {
		s := g.Snapshot()[0]
		require.Equal(f.t, want, s.State, "worker %d", i)
		require.Equal(f.t, generation, s.Generation, "worker %d", i)
		require.True(f.t, s.Shared, "worker %d", i)
	}
}

// revision is the number of writes to the breakers' bucket.
func (f *fleet) revision() uint64 {
	f.t.Helper()
	js, err := jetstream.New(f.nc)
	require.NoError(f.t, err)
	stream, err := js.Stream(f.t.Context(), "KV_llm_breakers")
	require.NoError(f.t, err)
	return stream.CachedInfo().State.LastSeq
}

// put is an operator's nats kv put.
func (f *fleet) put(value string) {
	f.t.Helper()
	_, err := f.buckets.Breakers.Put(f.t.Context(), key, []byte(value))
	require.NoError(f.t, err)
	synctest.Wait()
}

// listen collects the payloads sent to a subject.
func (f *fleet) listen(subject string) func() []string {
	f.t.Helper()
	var heard list[string]
	_, err := f.nc.Subscribe(subject, func(m *nats.Msg) { heard.add(string(m.Data)) })
	require.NoError(f.t, err)
	require.NoError(f.t, f.nc.Flush())
	return heard.all
}

type list[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *list[T]) add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *list[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}

// elapse moves the clock of the bubble on.
func elapse(d time.Duration) { <-time.After(d) }
