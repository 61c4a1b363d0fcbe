package breaker_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// BenchmarkObeyed measures, over real sockets and a file store, how long after
// a worker opens its breaker the last of four others refuses calls. The bucket
// alone tells them: they count only their own failures.
func BenchmarkObeyed(b *testing.B) {
	srv := natstest.ListenServer(b)
	var breakers []*breaker.Breaker
	var stops []func()
	var operator *kv.Bucket
	for n := range 5 {
		nc := srv.Dial()
		js, err := jetstream.New(nc)
		require.NoError(b, err)
		buckets, err := kv.Open(b.Context(), js, kv.Options{})
		require.NoError(b, err)
		g, _ := start(b, nc, buckets, &stops)
		breakers = append(breakers, g.Breaker(key, breaker.Settings{Threshold: 1 + 99*min(n, 1)}))
		operator = buckets.Breakers
		<-g.Ready()
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		fail(b, breakers[0])
		spin(breakers, false)
		took = append(took, time.Since(began))
		require.NoError(b, operator.Delete(b.Context(), key, 0))
		spin(breakers, true)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func spin(breakers []*breaker.Breaker, ready bool) {
	for _, br := range breakers {
		for br.Ready() != ready {
			runtime.Gosched()
		}
	}
}
