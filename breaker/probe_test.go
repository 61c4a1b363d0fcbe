package breaker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// TestOneProbeInEachWindow is the promise that matters most: whatever number of
// workers and callers wait for the end of a cool-down, the provider gets one call.
func TestOneProbeInEachWindow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		const cycles, callers = 100, 200
		f := newFleet(t, 5, breaker.Settings{Threshold: 1, CoolDown: 2 * time.Second, MaxCoolDown: 2 * time.Second, ProbeTimeout: time.Second})
		f.fail(0)
		before := len(f.messages())
		for cycle := range cycles {
			elapse(2*time.Second - 50*time.Millisecond) // callers come before any cool-down is over
			var calls atomic.Int64
			var wg sync.WaitGroup
			for n := range 5 * callers {
				wg.Go(func() {
					b := f.breakers[n%5]
					for range 10 { // over 500 ms, through the spread of the workers' waits
						if p, err := b.Acquire(t.Context()); err == nil {
							require.True(t, p.Probe())
							calls.Add(1)
							elapse(20 * time.Millisecond)
							p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
						}
						elapse(50 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			synctest.Wait()
			require.EqualValues(t, 1, calls.Load(), "cycle %d", cycle)
			elapse(f.untilProbe() - 2*time.Second)
		}
		perCycle := float64(len(f.messages())-before) / cycles
		require.Less(t, perCycle, 40.0, "KV messages for one window")
		t.Logf("%.1f KV messages for each window of %d callers", perCycle, 5*callers)
	})
}

func TestDeadProberIsReplaced(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 3, breaker.Settings{Threshold: 1, ProbeTimeout: 4500 * time.Millisecond})
		f.fail(0)
		f.probe(0) // and is never heard of again
		began := time.Now()
		f.stop(0)
		for {
			p, err := f.breakers[1].Acquire(t.Context())
			if err == nil {
				require.True(t, p.Probe())
				break
			}
			require.ErrorIs(t, err, breaker.ErrOpen)
			elapse(10 * time.Millisecond)
		}
		lease := 6 * time.Second
		require.GreaterOrEqual(t, time.Since(began), lease-100*time.Millisecond)
		require.LessOrEqual(t, time.Since(began), lease+500*time.Millisecond)
		t.Logf("next probe %s after the dead one's lease", time.Since(began)-lease)
	})
}

func TestOwnerThatOutlivesItsLeaseIsFenced(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1, ProbeTimeout: time.Second})
		f.fail(0)
		slow := f.probe(0)
		elapse(2500 * time.Millisecond)
		fast := f.probe(1)
		fast.Done(t.Context(), breaker.Result{Kind: breaker.Success})
		f.settled(breaker.Closed)
		slow.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
		f.settled(breaker.Closed)
		slow.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
		f.settled(breaker.Closed)
	})
}

func TestNeutralProbeFreesTheLease(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		f.probe(0).Done(t.Context(), breaker.Result{Kind: breaker.Neutral})
		f.settled(breaker.Open)
		require.EqualValues(t, 10_000, f.groups[1].Snapshot()[0].CoolDownMS, "no longer cool-down")
		require.LessOrEqual(t, f.untilProbe(), 1100*time.Millisecond)
		f.probe(1).Done(t.Context(), breaker.Result{Kind: breaker.Success})
		f.settled(breaker.Closed)
	})
}

func TestWatcherSeesEveryTransition(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		watcher := f.watch()
		for range 2 {
			f.fail(0)
			f.probe(1).Done(t.Context(), breaker.Result{Kind: breaker.Success})
			f.settled(breaker.Closed)
		}
		require.Equal(t, []breaker.State{"open", "half_open", "closed", "open", "half_open", "closed"}, watcher())
	})
}

func TestCallerThatGoesAwayDoesNotHoldTheLease(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		elapse(f.untilProbe())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p, err := f.breakers[0].Acquire(ctx)
		require.NoError(t, err)
		p.Done(ctx, breaker.Result{Kind: breaker.Neutral})
		synctest.Wait()
		f.probe(1)
	})
}

// watch is a plain KV watcher.
func (f *fleet) watch() func() []breaker.State {
	f.t.Helper()
	js, err := jetstream.New(f.nc)
	require.NoError(f.t, err)
	bucket, err := js.KeyValue(f.t.Context(), kv.BreakersBucket)
	require.NoError(f.t, err)
	w, err := bucket.WatchAll(f.t.Context(), jetstream.UpdatesOnly())
	require.NoError(f.t, err)
	return func() (seen []breaker.State) {
		require.NoError(f.t, w.Stop())
		for e := range w.Updates() {
			if e == nil {
				continue
			}
			r, err := breaker.DecodeRecord(e.Value())
			require.NoError(f.t, err)
			seen = append(seen, r.State)
		}
		return seen
	}
}
