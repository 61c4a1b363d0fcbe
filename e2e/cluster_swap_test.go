package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/provider/fake"
)

// Codes by which a server says that another write came first.
const (
	staleCode    = 10071 // the revision is not the last one stored
	inFlightCode = 10164 // another write of the key is being replicated
)

// race has n writers replace the same revision at the same instant and returns
// the errors of those that did not.
func race(n int, write func(i int) error) (lost []error) {
	var mu sync.Mutex
	var writers sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		writers.Go(func() {
			<-start
			if err := write(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, err)
			}
		})
	}
	close(start)
	writers.Wait()
	return lost
}

// On three replicas a conflict has one of two codes. Whichever it is, one
// writer wins and the others know that they lost.
func TestClusterRacesHaveOneWinner(t *testing.T) {
	const writers = 6
	nodes := natstest.Cluster(t, 3)
	var buckets []*kv.Bucket
	var raw []jetstream.JetStream
	for range writers {
		js, err := jetstream.New(nodes.Dial(t))
		require.NoError(t, err)
		b, err := kv.Open(t.Context(), js, kv.Options{})
		require.NoError(t, err)
		buckets, raw = append(buckets, b.Breakers), append(raw, js)
	}
	revision, err := buckets[0].Put(t.Context(), primary, []byte("{}"))
	require.NoError(t, err)

	codes := map[jetstream.ErrorCode]int{}
	for began := time.Now(); codes[staleCode] == 0 || codes[inFlightCode] == 0; revision++ {
		lost := race(writers, func(i int) error { return swapRaw(t.Context(), raw[i], revision) })
		require.Len(t, lost, writers-1)
		for _, err := range lost {
			api, ok := errors.AsType[*jetstream.APIError](err)
			require.True(t, ok, "%v", err)
			codes[api.ErrorCode]++
		}
		require.Less(t, time.Since(began), 10*time.Second, "only saw %v", codes)
	}
	require.Len(t, codes, 2, "%v", codes)

	for range 100 {
		lost := race(writers, func(i int) error {
			_, err := buckets[i].Update(t.Context(), primary, []byte("{}"), revision)
			return err
		})
		require.Len(t, lost, writers-1)
		for _, err := range lost {
			require.ErrorIs(t, err, kv.ErrConflict)
		}
		revision++
	}
	t.Logf("raw conflicts: %v", codes)
}

func swapRaw(ctx context.Context, js jetstream.JetStream, revision uint64) error {
	msg := &nats.Msg{Subject: "$KV." + kv.BreakersBucket + "." + primary, Data: []byte("{}"), Header: nats.Header{}}
	msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(revision))
	_, err := js.PublishMsg(ctx, msg)
	return err
}

// Workers that open one breaker at the same instant write one record.
func TestClusterBreakersAgreeAfterARace(t *testing.T) {
	const rounds = 30
	deletions := 0
	nodes := natstest.Cluster(t, 3)
	settings := breaker.Settings{Threshold: 1, CoolDown: time.Hour, MaxCoolDown: time.Hour}
	f := startFleet(t, 5, plan{dial: func() *nats.Conn { return nodes.Dial(t) }, breaker: settings, providers: []*fake.Provider{fake.New()}})
	defer f.halt()
	js, err := jetstream.New(f.caller)
	require.NoError(t, err)
	records, err := js.KeyValue(t.Context(), kv.BreakersBucket)
	require.NoError(t, err)
	for range rounds {
		lost := race(len(f.workers), func(i int) error {
			permit, err := f.workers[i].breakers.Breaker(primary, settings).Acquire(t.Context())
			if err == nil {
				permit.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "connect"})
			}
			return err
		})
		for _, err := range lost { // heard of the first failure before it asked
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		for _, w := range f.workers {
			until(t, "all agree", func() bool { s := w.breakers.Snapshot()[0]; return s.State == breaker.Open && s.Shared })
		}
		require.NoError(t, records.Delete(t.Context(), primary))
		deletions++
		for _, w := range f.workers {
			until(t, "all are closed", func() bool {
				if w.state(primary) == breaker.Closed {
					return true
				}
				if _, err := records.Get(t.Context(), primary); err == nil { // a write that was on its way overruled it
					require.NoError(t, records.Delete(t.Context(), primary))
					deletions++
				}
				return false
			})
		}
	}
	stream, err := js.Stream(t.Context(), breakersStream)
	require.NoError(t, err)
	written := int(stream.CachedInfo().State.LastSeq) - deletions
	require.Less(t, written, 2*rounds, "one record a round, and seldom one that overrules a deletion")
	t.Logf("%d rounds, %d records", rounds, written)
}
