package e2e

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// ordeal is a fleet on three servers under steady traffic, of which one
// misfortune after the other takes something away.
type ordeal struct {
	*meshFleet
	*traffic
	a *ill

	cuts []time.Time // when connections broke without a word
	left []time.Time // when callers on server 0 were told that it leaves, and were cut off
}

// Requests end, whatever happens to the servers between caller and worker: in
// an answer or in a clear error. Core NATS delivers at most once, so that a
// request or an answer that is on a connection when it breaks is lost, and its
// caller is left to its own clock: the Go client then says deadline, and a plain
// request times out. That may happen to nobody else, and a worker's connection
// does not break when its server says in time that it leaves.
func TestClusterLosesNoRequest(t *testing.T) {
	o := &ordeal{a: newIll()}
	o.a.down.Store(false)
	o.meshFleet = startMeshFleet(t, plan{providers: []*fake.Provider{o.a.Provider, fake.New(fake.Answer("from b"))}, slots: 64,
		breaker: breaker.Settings{CoolDown: time.Hour, MaxCoolDown: time.Hour}})
	defer o.halt()
	o.traffic = o.meshFleet.traffic(t)
	defer o.end()
	for at := range 3 {
		o.answered(t, at, 50)
	}
	o.lameDuck(t)
	o.restart(t)
	o.partition(t)
	o.kill(t)
	o.end()
	o.judge(t)
}

// cut notes when it breaks connections.
func (o *ordeal) cut(how func(int), at int) {
	o.cuts = append(o.cuts, time.Now())
	how(at)
	o.cuts = append(o.cuts, time.Now())
}

// lead has one server lead both buckets that workers follow.
func (o *ordeal) lead(at int) {
	o.Lead(o.caller, flagsStream, at)
	o.Lead(o.caller, breakersStream, at)
}

// lameDuck ends a server in order, and its worker goes to another in time.
func (o *ordeal) lameDuck(t *testing.T) {
	o.lead(0)
	o.left = append(o.left, time.Now())
	o.LameDuck(0)
	o.left = append(o.left, time.Now())
	until(t, "the worker went elsewhere", func() bool { return o.On(o.workers[0].conn) > 0 })
	o.known(t, "lame duck")
	o.Restart(0)
	o.Settle()
}

// restart takes the server of a worker away and brings it back. The leader of
// the buckets stays: where it goes too, its followers elect another within a
// moment if it could hand over and within 4 to 9 s if not.
func (o *ordeal) restart(t *testing.T) {
	at := o.On(o.workers[2].conn)
	o.lead((at + 1) % 3)
	blackout := watch(o.workers[2])
	o.cut(o.Restart, at)
	o.Settle()
	o.known(t, "restart")
	longest := blackout()
	require.Less(t, longest, 2*time.Second)
	t.Logf("restart: mirrors not fresh for %s", longest)
}

// kill ends the leader of the buckets with no word to anybody.
func (o *ordeal) kill(t *testing.T) {
	at := o.On(o.workers[0].conn)
	o.lead(at)
	o.cut(o.Kill, at)
	killed := time.Now()
	for i := range 3 {
		o.answered(t, i, 50) // callers of the dead server have moved
	}
	t.Logf("kill: everybody is served again after %s", time.Since(killed))
	o.settled(t)
	t.Logf("kill: the buckets have a leader again after %s", time.Since(killed))
	o.known(t, "kill")
}

// settled waits until both buckets have a leader that all workers follow.
func (o *ordeal) settled(t *testing.T) {
	require.Eventually(t, func() bool {
		for _, w := range o.workers {
			if w.degraded(t.Context()) {
				return false
			}
		}
		return o.Leader(flagsStream) >= 0 && o.Leader(breakersStream) >= 0
	}, 20*time.Second, time.Millisecond)
}

// partition cuts one server off from the others, with the leader of the
// buckets, while the primary provider fails.
func (o *ordeal) partition(t *testing.T) {
	minority, lonely := o.alone(t)
	o.lead(minority)
	o.cut(o.Isolate, minority)
	cut := time.Now()
	until(t, "the minority knows", func() bool { return lonely.degraded(t.Context()) })
	t.Logf("partition: replies are degraded after %s", time.Since(cut))
	o.a.down.Store(true)
	for _, w := range o.workers {
		until(t, "every side decides", func() bool { return w.state(primary) == breaker.Open })
	}
	before := o.count(func(f fate) bool { return f.at == minority && f.err == nil && f.degraded })
	o.answered(t, minority, 100)
	require.Greater(t, o.count(func(f fate) bool { return f.at == minority && f.err == nil && f.degraded }), before)

	until(t, "calls in flight have ended", func() bool { return o.a.Running() == 0 })
	calls := o.a.Count()
	o.Heal(minority)
	healed := time.Now()
	o.settled(t)
	for _, w := range o.workers {
		until(t, "all agree", func() bool { s := w.breakers.Snapshot()[0]; return s.State == breaker.Open && s.Shared })
	}
	t.Logf("partition: all agree %s after it was healed", time.Since(healed))
	o.known(t, "partition")
	require.Equal(t, calls, o.a.Count(), "calls of the primary after both sides had opened")
	require.LessOrEqual(t, o.writes(t), uint64(2), "one write for each side, no stampede")

	o.a.down.Store(false)
	o.write(t, func(ctx context.Context) error { return o.breakers.Delete(ctx, primary) })
	for _, w := range o.workers {
		until(t, "the operator's reset", func() bool { return w.state(primary) == breaker.Closed })
	}
	o.Settle()
}

// alone puts one worker on a server of its own.
func (o *ordeal) alone(t *testing.T) (at int, w *worker) {
	w = o.workers[2]
	for {
		at = o.On(w.conn)
		if at != o.On(o.caller) && at != o.On(o.workers[0].conn) && at != o.On(o.workers[1].conn) {
			return at, w
		}
		o.lame[3] <- struct{}{}
		until(t, "the worker goes elsewhere", func() bool { now := o.On(w.conn); return now >= 0 && now != at })
	}
}

func (o *ordeal) writes(t *testing.T) uint64 {
	js, err := jetstream.New(o.caller)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), breakersStream)
	require.NoError(t, err)
	return stream.CachedInfo().State.LastSeq
}

// judge looks at how every request ended.
func (o *ordeal) judge(t *testing.T) {
	ends := map[string]int{}
	late := 0
	var unclear []fate
	for _, f := range o.done {
		ends[f.name()]++
		require.LessOrEqual(t, f.end.Sub(f.begun), deadline+slack, "a caller waited beyond its deadline")
		if f.lost() {
			late++
		}
		broke := f.within(o.cuts) || f.at == 0 && f.within(o.left)
		if f.lost() && !broke || !f.lost() && !f.clear() {
			unclear = append(unclear, f)
		}
	}
	require.Empty(t, unclear, "neither an answer nor a clear error, although no connection broke")
	require.GreaterOrEqual(t, len(o.done), 10_000)
	t.Logf("%d requests: %v; %d of them left to the clock by %d cuts", len(o.done), maps.Collect(maps.All(ends)), late, len(o.cuts)/2)
}

func (f fate) name() string {
	kind := "client "
	if f.raw {
		kind = "raw "
	}
	if e, ok := f.err.(*llm.Error); ok {
		return kind + string(e.Code)
	}
	if f.err != nil {
		return kind + f.err.Error()
	}
	if f.degraded {
		return kind + "answered degraded"
	}
	return kind + "answered"
}

// watch samples a worker's mirror until the returned function is called, which
// tells the longest time in which it was not fresh.
func watch(w *worker) (longest func() time.Duration) {
	var watching sync.WaitGroup
	stop, worst := make(chan struct{}), time.Duration(0)
	watching.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		good := time.Now()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				if !w.breakers.Degraded() {
					worst = max(worst, now.Sub(good))
					good = now
				}
			}
		}
	})
	return func() time.Duration {
		close(stop)
		watching.Wait()
		return worst
	}
}
