package breaker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
)

func TestFleetCountsTogether(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 5, breaker.Settings{Threshold: 5})
		for i := range 5 {
			for _, b := range f.breakers {
				require.True(t, b.Ready())
			}
			f.fail(i)
		}
		f.settled(breaker.Open)
		require.EqualValues(t, 1, f.revision(), "one worker wrote, the others adopted")
		mine := 0
		for _, changes := range f.changes {
			require.Len(t, changes(), 1)
			if changes()[0].Mine {
				mine++
			}
		}
		require.Equal(t, 1, mine)
		for _, g := range f.groups {
			require.Equal(t, "timeout", g.Snapshot()[0].Why)
		}
	})
}

func TestAllCrossTheLineAtOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 5, breaker.Settings{Threshold: 1})
		var permits []breaker.Permit
		for _, b := range f.breakers {
			p, err := b.Acquire(t.Context())
			require.NoError(t, err)
			defer p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "late"})
			permits = append(permits, p)
		}
		for _, p := range permits {
			go p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
		}
		f.settled(breaker.Open)
		require.EqualValues(t, 1, f.revision())
		for _, g := range f.groups {
			require.EqualValues(t, 1, g.Snapshot()[0].Generation)
		}
	})
}

func TestOutageIsAnnouncedBriefly(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 5})
		heard := f.listen("llm.failures.>")
		var permits []breaker.Permit
		for n := range 200 {
			p, err := f.breakers[n%2].Acquire(t.Context())
			require.NoError(t, err)
			permits = append(permits, p)
		}
		for _, p := range permits {
			p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
		}
		f.settled(breaker.Open)
		require.LessOrEqual(t, len(heard()), 10)
		require.EqualValues(t, 1, f.revision())
	})
}

func TestSuccessIsSilent(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 1, breaker.Settings{})
		heard := f.listen("llm.failures.>")
		for range 100 {
			p, err := f.breakers[0].Acquire(t.Context())
			require.NoError(t, err)
			require.Equal(t, breaker.Closed, p.State())
			p.Done(t.Context(), breaker.Result{Kind: breaker.Success})
		}
		synctest.Wait()
		require.Empty(t, heard())
		require.Zero(t, f.revision())
	})
}

func TestRefusalSaysWhyAndWhen(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		_, err := f.breakers[1].Acquire(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen)
		open, ok := errors.AsType[*breaker.OpenError](err)
		require.True(t, ok)
		require.Equal(t, "timeout", open.Why)
		require.Equal(t, breaker.Open, open.State)
		require.Greater(t, open.RetryAfter, 9*time.Second)
		require.False(t, f.breakers[1].Ready())
	})
}

func TestCoolingIsSharedAndEndsWithoutAProbe(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 3, breaker.Settings{})
		var inFlight []breaker.Permit
		for _, b := range f.breakers {
			p, err := b.Acquire(t.Context())
			require.NoError(t, err)
			inFlight = append(inFlight, p)
		}
		for _, p := range inFlight {
			p.Cool(t.Context(), 20*time.Second, "rate_limited")
			p.Done(t.Context(), breaker.Result{Kind: breaker.Neutral})
			synctest.Wait()
		}
		f.settled(breaker.Cooling)
		require.EqualValues(t, 1, f.revision(), "the others were told the same")
		_, err := f.breakers[2].Acquire(t.Context())
		open, ok := errors.AsType[*breaker.OpenError](err)
		require.True(t, ok)
		require.Equal(t, "rate_limited", open.Why)
		require.Greater(t, open.RetryAfter, 19*time.Second)
		elapse(22 * time.Second)
		for _, b := range f.breakers {
			p, err := b.Acquire(t.Context())
			require.NoError(t, err)
			require.False(t, p.Probe())
		}
		f.settled(breaker.Closed)
		require.EqualValues(t, 1, f.revision())
	})
}

func TestLateWorkerObeysAtOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 1, breaker.Settings{Threshold: 1})
		f.fail(0)
		elapse(7 * time.Second)
		late := f.add(breaker.Settings{Threshold: 1})
		_, err := f.breakers[late].Acquire(t.Context())
		open, ok := errors.AsType[*breaker.OpenError](err)
		require.True(t, ok)
		require.Greater(t, open.RetryAfter, 2*time.Second)
		require.Less(t, open.RetryAfter, 5*time.Second, "the record's age counts")
	})
}

func TestOneKeyHasOneBreaker(t *testing.T) {
	g, err := breaker.New(breaker.Config{})
	require.NoError(t, err)
	a := g.Breaker("openai.gpt", breaker.Settings{Threshold: 9})
	require.Same(t, a, g.Breaker("openai.gpt", breaker.Settings{Threshold: 1}))
	fail(t, a)
	require.False(t, a.Ready(), "the last settings are in force")
	require.False(t, g.Degraded(), "nothing to be degraded from")
	require.Equal(t, "openai.gpt", g.Snapshot()[0].Key)
}

func TestAloneItProbesAlone(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		g, err := breaker.New(breaker.Config{})
		require.NoError(t, err)
		b := g.Breaker("openai.gpt", breaker.Settings{Threshold: 1})
		fail(t, b)
		elapse(11 * time.Second)
		p, err := b.Acquire(t.Context())
		require.NoError(t, err)
		require.True(t, p.Probe())
		require.Equal(t, breaker.HalfOpen, p.State())
		_, err = b.Acquire(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen)
		p.Done(t.Context(), breaker.Result{Kind: breaker.Success})
		require.True(t, b.Ready())
	})
}

func BenchmarkAcquireClosed(b *testing.B) {
	g, err := breaker.New(breaker.Config{})
	require.NoError(b, err)
	br := g.Breaker("openai.gpt", breaker.Settings{})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		p, err := br.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		p.Done(ctx, breaker.Result{Kind: breaker.Success})
	}
}
