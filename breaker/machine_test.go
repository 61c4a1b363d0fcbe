package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bench drives one machine by hand.
type bench struct {
	machine
	view
	now time.Time
}

func newBench(s Settings) *bench {
	b := &bench{machine: machine{Settings: s.withDefaults(), worker: "me"}, now: time.Unix(1e9, 0)}
	b.view = view{state: Closed, begun: b.now}
	return b
}

func (b *bench) do(e event) (effect effect) {
	b.view, effect = b.next(b.view, e, b.now)
	return effect
}

func (b *bench) fail(n int) {
	for range n {
		b.do(failed{b.epoch, "timeout"})
	}
}

func (b *bench) probe(kind Kind) {
	b.now = b.until
	b.do(asked{})
	b.do(won{b.epoch})
	b.do(probed{epoch: b.epoch, kind: kind, why: "connect"})
}

func TestWindowSlides(t *testing.T) {
	b := newBench(Settings{Threshold: 3, Window: 10 * time.Second})
	b.fail(2)
	b.now = b.now.Add(10 * time.Second)
	b.fail(2)
	require.Equal(t, Closed, b.state)
	b.fail(1)
	require.Equal(t, Open, b.state)
	require.Equal(t, 3, b.tally)
}

func TestCoolDownEscalatesAndIsForgotten(t *testing.T) {
	b := newBench(Settings{Threshold: 1, MaxCoolDown: 35 * time.Second})
	b.fail(1)
	require.Equal(t, 10*time.Second, b.coolDown)
	for _, want := range []time.Duration{20 * time.Second, 35 * time.Second, 35 * time.Second} {
		b.probe(Failure)
		require.Equal(t, want, b.coolDown)
		require.Equal(t, "connect", b.why)
	}
	b.probe(Success)
	require.Equal(t, Closed, b.state)
	b.now = b.now.Add(29 * time.Second)
	b.fail(1)
	require.Equal(t, 35*time.Second, b.coolDown, "it has not been well for a window")
	b.probe(Success)
	b.now = b.now.Add(30 * time.Second)
	b.fail(1)
	require.Equal(t, 10*time.Second, b.coolDown)
}

func TestNeutralProbeIsFollowedSoon(t *testing.T) {
	b := newBench(Settings{Threshold: 1})
	b.fail(1)
	b.probe(Neutral)
	require.Equal(t, Open, b.state)
	require.Equal(t, "timeout", b.why)
	require.Equal(t, 10*time.Second, b.coolDown)
	require.Equal(t, time.Second, b.until.Sub(b.now))
}

func TestRateLimitedProbeWaitsAsTold(t *testing.T) {
	b := newBench(Settings{Threshold: 1})
	b.fail(1)
	b.now = b.until
	b.do(asked{})
	b.do(won{b.epoch})
	b.do(probed{epoch: b.epoch, kind: Neutral, cool: time.Minute})
	require.Equal(t, Open, b.state)
	require.Equal(t, time.Minute, b.until.Sub(b.now))
	require.Equal(t, 10*time.Second, b.coolDown, "not a failure")
}

func TestOldPermitsHaveNoSay(t *testing.T) {
	b := newBench(Settings{Threshold: 1})
	old := b.epoch
	b.fail(1)
	opened := b.view
	require.Equal(t, none, b.do(failed{old, "timeout"}))
	require.Equal(t, opened, b.view)
	b.probe(Success)
	require.Equal(t, none, b.do(failed{old, "timeout"}))
	require.Equal(t, Closed, b.state)
}

func TestCoolingIsNoFailure(t *testing.T) {
	b := newBench(Settings{Threshold: 2})
	b.fail(1)
	epoch := b.epoch
	b.do(cooled{20 * time.Second, "rate_limited"})
	require.Equal(t, Cooling, b.state)
	require.Equal(t, refuse, b.do(asked{}))
	generation := b.generation
	b.do(cooled{20500 * time.Millisecond, "rate_limited"})
	require.Equal(t, generation, b.generation, "many in flight are told the same: one write")
	b.do(cooled{40 * time.Second, "quota_exhausted"})
	require.Equal(t, 40*time.Second, b.until.Sub(b.now))
	b.now = b.until
	require.Equal(t, admit, b.do(asked{}))
	require.Equal(t, Closed, b.state)
	require.Equal(t, epoch, b.epoch)
	require.Zero(t, b.coolDown)

	b.do(cooled{time.Second, "rate_limited"})
	b.fail(2)
	require.Equal(t, Open, b.state, "failures of calls in flight count")
	opened := b.view
	b.do(cooled{time.Hour, "rate_limited"})
	require.Equal(t, opened, b.view, "an open breaker has its own wait")
}

func TestRampAdmitsByShares(t *testing.T) {
	b := newBench(Settings{Threshold: 1, Ramp: 30 * time.Second})
	b.fail(1)
	b.probe(Success)
	for _, want := range []int{10, 25, 50, 100} {
		b.now = b.now.Add(time.Second)
		got := 0
		for range 100 {
			if b.do(asked{}) == admit {
				got++
			}
		}
		require.Equal(t, want, got)
		b.now = b.now.Add(9 * time.Second)
	}
	require.True(t, b.free())
}

func TestLostLeaseBacksOff(t *testing.T) {
	b := newBench(Settings{Threshold: 1})
	b.fail(1)
	b.now = b.until
	require.Equal(t, claim, b.do(asked{}))
	require.Equal(t, refuse, b.do(asked{}), "one claim at a time")
	b.do(lost{b.epoch})
	require.Equal(t, refuse, b.do(asked{}))
	b.now = b.now.Add(250 * time.Millisecond)
	require.Equal(t, claim, b.do(asked{}))
}

func TestLearned(t *testing.T) {
	now := time.Unix(1e9, 0)
	open := view{state: Open, generation: 3, revision: 7, epoch: 1, pending: true, begun: now, by: "me", coolDown: 10 * time.Second}
	for name, tc := range map[string]struct {
		v        view
		e        learned
		state    State
		revision uint64
		pending  bool
	}{
		"older revision":         {open, learned{Record{State: Closed}, 7, now}, Open, 7, true},
		"others opened too":      {open, learned{Record{State: Open, Generation: 3, By: "you"}, 8, now}, Open, 8, false},
		"own write":              {open, learned{Record{State: Open, Generation: 3, By: "me"}, 8, now}, Open, 8, false},
		"own earlier write":      {open, learned{Record{State: Closed, Generation: 2, By: "me"}, 8, now}, Open, 8, true},
		"closed before it":       {open, learned{Record{State: Closed, Generation: 5}, 8, now.Add(-1)}, Open, 8, true},
		"closed after it":        {open, learned{Record{State: Closed, Generation: 5}, 8, now}, Closed, 8, false},
		"cooling meanwhile":      {open, learned{Record{State: Cooling, Generation: 3}, 8, now}, Open, 8, true},
		"another's probe is out": {open, learned{Record{State: HalfOpen, Generation: 5}, 8, now}, HalfOpen, 8, false},
	} {
		m := machine{Settings: Settings{}.withDefaults(), worker: "me"}
		v, _ := m.next(tc.v, tc.e, now)
		require.Equal(t, tc.state, v.state, name)
		require.Equal(t, tc.revision, v.revision, name)
		require.Equal(t, tc.pending, v.pending, name)
		if v.pending {
			require.Greater(t, v.generation, tc.e.record.Generation, name)
		}
	}
}

func TestAgeShortensTheWait(t *testing.T) {
	b := newBench(Settings{})
	b.do(learned{Record{State: Open, CoolDownMS: 60_000}, 1, b.now.Add(-50 * time.Second)})
	require.Equal(t, 10*time.Second, b.until.Sub(b.now))
	b.do(learned{Record{State: HalfOpen, CoolDownMS: 60_000, WaitMS: 31_000}, 2, b.now.Add(-30 * time.Second)})
	require.Equal(t, time.Second, b.until.Sub(b.now))
}

func TestMissingIsNoOpinionAndDeletedIsReset(t *testing.T) {
	b := newBench(Settings{Threshold: 1})
	b.fail(1)
	b.do(shared{b.generation, 5})
	b.do(vanished{})
	require.Equal(t, Open, b.state)
	require.Zero(t, b.revision, "the next write creates the key")
	b.do(learned{Record{State: Open, Generation: 9}, 6, b.now})
	b.do(garbled{7})
	require.Equal(t, Open, b.state)
	b.do(reset{8})
	require.Equal(t, Closed, b.state)
	require.True(t, b.free())
	require.False(t, b.pending)
}

// A write that was on its way when an operator deleted the key comes after the
// deletion: the fleet follows the bucket, and so must the writer.
func TestAWriteThatOvertakesAResetIsLearned(t *testing.T) {
	overtaken := func() (*bench, Record) {
		b := newBench(Settings{Threshold: 1})
		b.fail(1)
		r := b.record(b.now)
		r.By = "me"
		b.do(learned{Record{State: Open, By: "other", Generation: 1}, 3, b.now})
		b.do(reset{4})
		require.Equal(t, Closed, b.state)
		return b, r
	}
	t.Run("reply first", func(t *testing.T) {
		b, r := overtaken()
		b.do(shared{r.Generation, 5})
		b.do(learned{r, 5, b.now})
		require.Equal(t, Open, b.state)
		require.EqualValues(t, 5, b.revision)
	})
	t.Run("push first", func(t *testing.T) {
		b, r := overtaken()
		b.do(learned{r, 5, b.now})
		b.do(shared{r.Generation, 5})
		require.Equal(t, Open, b.state)
		require.EqualValues(t, 5, b.revision)
	})
	t.Run("with a newer view to share", func(t *testing.T) {
		b, r := overtaken()
		b.fail(1)
		b.generation = 7
		b.do(shared{r.Generation, 5})
		require.EqualValues(t, 5, b.revision, "the base of the next write")
		require.True(t, b.pending)
	})
}
