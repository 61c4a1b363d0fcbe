package limits_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// all is every kind of limit at once, for the tenant and for the feature.
func all(n int64) limits.Policy {
	list := []limits.Limit{
		{Kind: limits.Requests, Window: limits.Day, Amount: n}, {Kind: limits.Tokens, Window: limits.Day, Amount: 1000 * n},
		{Kind: limits.USD, Window: limits.Day, Amount: n * 1e7}, {Kind: limits.Concurrent, Amount: 1000},
	}
	return limits.Policy{Tenants: limits.Rules{Default: list}, Features: map[string]limits.Rules{chat: {Default: list}}}
}

func benchFleet(b *testing.B, n int, p limits.Policy) *fleet {
	b.Helper()
	srv := natstest.ListenServer(b)
	f := &fleet{}
	for range n {
		f.add(b, srv.Dial(), p)
	}
	b.Cleanup(f.end)
	return f
}

// BenchmarkAdmit is one request from admission to settling: without a limit for
// it, and with leases of eight limits at hand.
func BenchmarkAdmit(b *testing.B) {
	use := chain.Use{Calls: 1, Tokens: 1500, USD: 0.003}
	for name, p := range map[string]limits.Policy{"none": {}, "eight": all(1e9)} {
		b.Run(name, func(b *testing.B) {
			w := benchFleet(b, 1, p).workers[0]
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					g, err := w.Admit(context.Background(), request)
					if err != nil {
						require.NoError(b, err)
					}
					if g == nil {
						continue
					}
					if err := g.Cover(context.Background(), use); err != nil {
						require.NoError(b, err)
					}
					g.Settle(use)
				}
			})
		})
	}
}

// BenchmarkUnleased asks the counter or the record for every request: a limit of
// 64 is leased one by one.
func BenchmarkUnleased(b *testing.B) {
	for _, l := range []limits.Limit{{Kind: limits.Requests, Window: limits.Day, Amount: 63}, {Kind: limits.Concurrent, Amount: 63}} {
		b.Run(string(l.Kind), func(b *testing.B) {
			f := benchFleet(b, 5, limits.Policy{Tenants: limits.Rules{Default: []limits.Limit{l}}})
			var workers atomic.Int64
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for i := workers.Add(1) << 32; pb.Next(); i++ {
					g, err := f.workers[i%5].Admit(context.Background(), &llm.Request{Tenant: fmt.Sprint("t", i), Feature: chat})
					require.NoError(b, err)
					g.Settle(chain.Use{Calls: 1})
				}
			})
		})
	}
}

// BenchmarkTenants tells what a worker keeps of each of 10,000 tenants that ask
// at the same time, each under eight limits.
func BenchmarkTenants(b *testing.B) {
	const tenants = 10_000
	for b.Loop() {
		w := benchFleet(b, 1, all(1e6)).workers[0]
		before := heap()
		for i := range tenants {
			g, err := w.Admit(b.Context(), &llm.Request{Tenant: fmt.Sprint("tenant-", i), Feature: chat})
			require.NoError(b, err)
			require.NoError(b, g.Cover(b.Context(), chain.Use{Calls: 1, Tokens: 10, USD: 0.01}))
			g.Settle(chain.Use{Calls: 1, Tokens: 10})
		}
		b.ReportMetric(float64(heap()-before)/tenants, "B/tenant")
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkCounter is the floor: one increment of one counter on the server, by
// 64 callers over one connection.
func BenchmarkCounter(b *testing.B) {
	f := benchFleet(b, 1, all(1e9))
	_, err := f.workers[0].Admit(b.Context(), request) // makes the stream
	require.NoError(b, err)
	subject := subjects.LimitCounter(subjects.LimitKey("day", "bench", "", "requests"), 1)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := f.workers[0].conn.RequestMsg(&nats.Msg{Subject: subject, Header: nats.Header{"Nats-Incr": {"1"}}}, 10*time.Second)
			require.NoError(b, err)
		}
	})
}
