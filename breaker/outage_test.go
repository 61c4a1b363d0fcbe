package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// lose takes the buckets away. The connections live on.
func (f *fleet) lose() {
	f.t.Helper()
	js, err := jetstream.New(f.nc)
	require.NoError(f.t, err)
	for _, bucket := range []string{kv.BreakersBucket, kv.ProbesBucket} {
		require.NoError(f.t, js.DeleteKeyValue(f.t.Context(), bucket))
	}
}

// restore makes them anew, empty.
func (f *fleet) restore() {
	f.t.Helper()
	open(f.t, f.nc)
	elapse(5 * time.Second)
	synctest.Wait()
	for _, g := range f.groups {
		require.False(f.t, g.Degraded())
	}
}

func TestWithoutKVEveryWorkerDecides(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 3, breaker.Settings{Threshold: 1})
		f.lose()
		f.fail(0)
		for _, b := range f.breakers {
			require.False(t, b.Ready(), "failures are heard all the same")
		}
		elapse(12 * time.Second)
		for i, b := range f.breakers {
			require.True(t, f.groups[i].Degraded())
			p, err := b.Acquire(t.Context())
			require.NoError(t, err)
			require.True(t, p.Probe())
			_, err = b.Acquire(t.Context())
			require.ErrorIs(t, err, breaker.ErrOpen, "one probe at each")
			p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "connect"})
			require.EqualValues(t, 20_000, f.groups[i].Snapshot()[0].CoolDownMS)
		}
		elapse(5 * time.Second)
		f.restore()
		f.settled(breaker.Open)
		require.EqualValues(t, 1, f.revision(), "one wrote and nobody stampeded")
		require.Less(t, f.untilProbe(), 20*time.Second, "the wait is not begun anew")
		for _, changes := range f.changes {
			require.Equal(t, breaker.Open, changes()[len(changes())-1].To)
		}
	})
}

func TestEmptyBucketDoesNotClose(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		f.lose()
		f.restore()
		for _, b := range f.breakers {
			require.False(t, b.Ready())
		}
		f.probe(1).Done(t.Context(), breaker.Result{Kind: breaker.Success})
		f.settled(breaker.Closed)
	})
}

func TestClosedAloneIsShared(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 3, breaker.Settings{Threshold: 1})
		f.fail(0)
		f.lose()
		elapse(20 * time.Second)
		p, err := f.breakers[2].Acquire(t.Context())
		require.NoError(t, err)
		p.Done(t.Context(), breaker.Result{Kind: breaker.Success})
		require.True(t, f.breakers[2].Ready())
		require.Equal(t, breaker.Open, f.groups[1].Snapshot()[0].State)
		f.restore()
		f.settled(breaker.Closed)
	})
}

func TestSlowProbeOfAnOutageYieldsToTheFleet(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.lose()
		f.fail(0)
		elapse(12 * time.Second)
		slow, err := f.breakers[0].Acquire(t.Context())
		require.NoError(t, err)
		f.restore()
		f.put(`{"state":"open","why":"incident","generation":50,"cool_down_ms":60000}`)
		slow.Done(t.Context(), breaker.Result{Kind: breaker.Success})
		f.settled(breaker.Open)
		require.EqualValues(t, 50, f.groups[0].Snapshot()[0].Generation)
	})
}

func TestPendingViewIsSharedWhenRunEnds(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		fail(t, f.breakers[0])
		f.stop(0)
		synctest.Wait()
		require.Equal(t, breaker.Open, f.groups[1].Snapshot()[0].State)
		require.EqualValues(t, 1, f.revision())
	})
}

func TestRestartOfTheServer(t *testing.T) {
	srv := natstest.ListenServer(t)
	var groups []*breaker.Group
	var breakers []*breaker.Breaker
	var stops []func()
	s := breaker.Settings{Threshold: 1, CoolDown: 100 * time.Millisecond}
	for range 3 {
		nc := srv.Dial()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		buckets, err := kv.Open(t.Context(), js, kv.Options{})
		require.NoError(t, err)
		g, _ := start(t, nc, buckets, &stops)
		groups, breakers = append(groups, g), append(breakers, g.Breaker(key, s))
	}
	all := func(ok func(i int) bool) func() bool {
		return func() bool { return ok(0) && ok(1) && ok(2) }
	}
	eventually := func(ok func(i int) bool, what string) {
		t.Helper()
		require.Eventually(t, all(ok), 10*time.Second, 5*time.Millisecond, what)
	}
	eventually(func(i int) bool { return !groups[i].Degraded() }, "follow the bucket")
	srv.Stop()
	eventually(func(i int) bool { return groups[i].Degraded() }, "notice")
	for _, b := range breakers {
		fail(t, b)
	}
	srv.Restart()
	eventually(func(i int) bool { return !groups[i].Degraded() }, "follow again")
	eventually(func(i int) bool {
		s := groups[i].Snapshot()[0]
		return s.State == breaker.Open && s.Shared
	}, "agree")
	var p breaker.Permit
	require.Eventually(t, func() (ok bool) {
		var err error
		p, err = breakers[1].Acquire(t.Context())
		return err == nil
	}, 10*time.Second, 5*time.Millisecond)
	p.Done(t.Context(), breaker.Result{Kind: breaker.Success})
	eventually(func(i int) bool { return groups[i].Snapshot()[0].State == breaker.Closed }, "close")
}
