package breaker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/subjects"
)

// Three regions around the one that keeps the buckets: messages take so long
// each way.
var regions = []time.Duration{time.Millisecond, 40 * time.Millisecond, 90 * time.Millisecond}

const scale = 100 // workers

// outage is what a fleet did while a provider was down for everybody.
type outage struct {
	announced, worst int           // failures told to the fleet, and the most in one second
	writes           int           // to the buckets
	calls            int64         // that reached the provider
	opened           time.Duration // from the first failure until no worker called
}

// lasting is how many seconds the provider is down.
const lasting = 15

// total has all workers of a fleet in three regions fail at so many requests a
// second each.
func total(t *testing.T, rate int) (o outage) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		near := natstest.Connect(t, srv)
		open(t, near)
		var breakers []*breaker.Breaker
		var stops []func()
		for i := range scale {
			nc := natstest.Far(t, srv, regions[i%len(regions)])
			g, _ := start(t, nc, open(t, nc), &stops)
			breakers = append(breakers, g.Breaker(key, breaker.Settings{}))
			<-g.Ready()
		}
		var mu sync.Mutex
		seconds, writes, begun := map[int]int{}, 0, time.Now()
		count := func(what func()) nats.MsgHandler {
			return func(*nats.Msg) {
				mu.Lock()
				defer mu.Unlock()
				what()
			}
		}
		for subject, what := range map[string]func(){
			subjects.Failures: func() { seconds[int(time.Since(begun)/time.Second)]++ },
			"$KV.>":           func() { writes++ },
		} {
			_, err := near.Subscribe(subject, count(what))
			require.NoError(t, err)
		}
		require.NoError(t, near.Flush())
		var calls, last atomic.Int64
		var working sync.WaitGroup
		for i, b := range breakers {
			working.Go(func() {
				every := time.Second / time.Duration(rate)
				<-time.After(every * time.Duration(i) / scale)
				for range lasting * rate {
					if p, err := b.Acquire(t.Context()); err == nil {
						calls.Add(1)
						if !p.Probe() {
							last.Store(int64(time.Since(begun)))
						}
						p.Done(context.WithoutCancel(t.Context()), breaker.Result{Kind: breaker.Failure, Why: "unavailable"})
					}
					<-time.After(every)
				}
			})
		}
		working.Wait()
		natstest.Advance(time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, n := range seconds {
			o.announced, o.worst = o.announced+n, max(o.worst, n)
		}
		o.writes, o.calls, o.opened = writes, calls.Load(), time.Duration(last.Load())
	})
	return o
}

// When a provider is down for everybody, what the workers tell each other does
// not grow with the requests that fail: each of them tells of no more failures than
// open the breaker, and then none until it has closed again.
func TestGossipIsBoundedHoweverManyRequestsFail(t *testing.T) {
	const threshold = 5 // the default
	for _, rate := range []int{1, 20} {
		o := total(t, rate)
		t.Logf("%d requests/s of %d workers: %d failures announced, at most %d in a second; %d bucket writes; %d calls; no calls but probes after %v",
			rate*scale, scale, o.announced, o.worst, o.writes, o.calls, o.opened)
		require.LessOrEqual(t, o.announced, scale*threshold, "at %d/s", rate)
		require.LessOrEqual(t, o.writes, 100, "probes and transitions alone")
		require.Less(t, o.opened, 400*time.Millisecond+2*time.Second/time.Duration(rate), "the farthest worker has heard")
	}
}
