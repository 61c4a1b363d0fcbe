package kv_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// A flip reaches the workers of every region in the time that a message takes:
// to the region that keeps the bucket, and from there to theirs.
func TestAFlipCrossesRegionsInTheTimeOfAMessage(t *testing.T) {
	const scale = 100
	regions := []time.Duration{time.Millisecond, 40 * time.Millisecond, 90 * time.Millisecond}
	bubble(t, func(t *testing.T, srv *server.Server, _ *kv.Buckets, _ jetstream.JetStream) {
		var obeyed atomic.Int64
		var begun time.Time
		var latest time.Duration
		for i := range scale {
			f := flags(t, bucketsOf(t, natstest.Far(t, srv, regions[i%len(regions)])).Flags, kv.FlagsConfig{OnChange: func(_ *kv.FlagSet, flips []kv.Flip) {
				if len(flips) > 0 && obeyed.Add(1) == scale {
					latest = time.Since(begun)
				}
			}})
			isOff, _ := off(t, f)
			require.False(t, isOff)
		}
		synctest.Wait()
		far := bucketsOf(t, natstest.Far(t, srv, 90*time.Millisecond)) // the operator
		begun = time.Now()
		_, err := far.Flags.Put(t.Context(), "feature.support", []byte("off"))
		require.NoError(t, err)
		natstest.Advance(time.Second)
		require.EqualValues(t, scale, obeyed.Load())
		t.Logf("%d workers obey after %v", scale, latest)
		require.LessOrEqual(t, latest, 180*time.Millisecond, "90 ms there, 90 ms back, and nothing else")
	})
}

func bucketsOf(t *testing.T, nc *nats.Conn) *kv.Buckets {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	return b
}
