package limits_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

const (
	acme = "acme"
	chat = "chat"
)

// fleet is some workers, each with a connection of its own.
type fleet struct {
	server  *server.Server
	storage jetstream.StorageType
	workers []*worker
}

type worker struct {
	*limits.Limiter
	conn *nats.Conn
	end  func() // in order; may be called again
	kill func() // as kill -9 does
}

// inBubble runs a test with n workers under a policy, in fake time.
func inBubble(t *testing.T, n int, p limits.Policy, test func(t *testing.T, f *fleet)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T) {
		f := &fleet{server: natstest.Server(t), storage: jetstream.MemoryStorage}
		for range n {
			f.add(t, natstest.Connect(t, f.server), p)
		}
		defer f.end()
		natstest.Advance(1500 * millisecond) // until all have heard of each other
		test(t, f)
	})
}

func (f *fleet) add(t testing.TB, nc *nats.Conn, p limits.Policy) *worker {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	options := kv.Options{Storage: f.storage}
	buckets, err := kv.Open(t.Context(), js, options)
	require.NoError(t, err)
	l, err := limits.New(limits.Config{JetStream: js, Slots: buckets.Slots, Options: options, Worker: fmt.Sprintf("w%d", len(f.workers))})
	require.NoError(t, err)
	require.NoError(t, l.Load(p))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	w := &worker{Limiter: l, conn: nc}
	w.end = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	w.kill = func() {
		nc.Close()
		w.end()
	}
	f.workers = append(f.workers, w)
	return w
}

func (f *fleet) end() {
	var group sync.WaitGroup
	defer group.Wait()
	for _, w := range f.workers {
		group.Go(w.end)
	}
}

// every reports whether something holds of all workers.
func (f *fleet) every(is func(*worker) bool) bool {
	return !slices.ContainsFunc(f.workers, func(w *worker) bool { return !is(w) })
}

// every limits each tenant over all features.
func every(list ...limits.Limit) limits.Policy {
	return limits.Policy{Tenants: limits.Rules{Default: list}}
}

var request = &llm.Request{Tenant: acme, Feature: chat}

// ask admits a request that may use so much, and nothing but that.
func (w *worker) ask(ctx context.Context, u chain.Use) (chain.Grant, error) {
	g, err := w.Admit(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := g.Cover(ctx, u); err != nil {
		g.Settle(chain.Use{})
		return nil, err
	}
	return g, nil
}

// parallel has callers ask at once, in turn at each worker, and returns what was
// admitted and the first refusal.
func (f *fleet) parallel(t *testing.T, callers int, u chain.Use) (grants []chain.Grant, refused *limits.Exceeded) {
	t.Helper()
	all := make([]int, len(f.workers))
	for i := range all {
		all[i] = i
	}
	return f.parallelAt(t, callers, u, all...)
}

func (f *fleet) parallelAt(t *testing.T, callers int, u chain.Use, at ...int) (grants []chain.Grant, refused *limits.Exceeded) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			g, err := f.workers[at[i%len(at)]].ask(t.Context(), u)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				grants = append(grants, g)
			} else {
				require.ErrorAs(t, err, &refused)
			}
		})
	}
	group.Wait()
	return grants, refused
}

func exceeded(t *testing.T, err error) *limits.Exceeded {
	t.Helper()
	e, ok := errors.AsType[*limits.Exceeded](err)
	require.True(t, ok, "%v", err)
	return e
}

// booked is the sum of all counters of hours.
func (f *fleet) booked(t *testing.T, nc *nats.Conn) (sum int64) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), subjects.LimitStream("hour"))
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	for subject := range info.State.Subjects {
		msg, err := s.GetLastMsgForSubject(t.Context(), subject)
		require.NoError(t, err)
		var v struct {
			Val int64 `json:"val,string"`
		}
		require.NoError(t, json.Unmarshal(msg.Data, &v))
		sum += v.Val
	}
	return sum
}
