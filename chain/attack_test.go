package chain_test

import (
	"context"
	"iter"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// opened makes a rig whose first target has an open breaker with a cool-down of
// a second.
func opened(t *testing.T, tune func(*chain.Feature), fakes ...*fake.Provider) *rig {
	rig := newRig(t, func(f *chain.Feature) {
		if tune != nil {
			tune(f)
		}
	}, fakes...)
	b := rig.breakers.Breaker(rig.feature.Targets[0].Breaker.Key(), breaker.Settings{Threshold: 1, CoolDown: time.Second, MaxCoolDown: time.Second})
	permit, err := b.Acquire(t.Context())
	require.NoError(t, err)
	permit.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "connect"})
	require.Equal(t, breaker.Open, rig.state("a"))
	pass(1200 * time.Millisecond)
	return rig
}

func TestAPanicOfAnAdapterIsAFailureOfItsTarget(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				panics := fake.Func(func(int, *llm.Request) fake.Step { panic("prompt-canary") })
				rig := newRig(t, nil, panics, fake.New())
				got := do(t.Context(), rig, ask())
				require.Nil(t, got.err)
				require.Equal(t, "b", got.resp.Provider)
				require.Equal(t, llm.OutcomeUnavailable, got.resp.Attempts[0].Class)
			})
		})
	}
}

func TestAPanickingProbeOpensAgainAndIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := true
		rig := opened(t, nil, fake.Func(func(int, *llm.Request) fake.Step {
			if sick {
				panic("x")
			}
			return fake.Answer("ok")
		}))
		require.NotNil(t, complete(t.Context(), rig, ask()).err)
		require.Equal(t, breaker.Open, rig.state("a"))
		sick = false
		pass(1200 * time.Millisecond)
		require.Nil(t, complete(t.Context(), rig, ask()).err)
		require.Equal(t, breaker.Closed, rig.state("a"))
	})
}

func TestAPanicOfTheReaderGivesTheProbeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := fake.New(fake.Answer("some", "text"))
		rig := opened(t, nil, provider)
		req := ask()
		req.Stream = true
		require.PanicsWithValue(t, "reader", func() {
			for range rig.Stream(t.Context(), req) {
				panic("reader")
			}
		})
		require.Zero(t, provider.Running())
		pass(2200 * time.Millisecond)
		require.Nil(t, complete(t.Context(), rig, ask()).err, "the lease of the probe is free")
	})
}

// nothing is an adapter that breaks the promises of llm.Completer.
type nothing struct{}

func (nothing) Complete(context.Context, *llm.Request) (*llm.Response, error) { return nil, nil }

func (nothing) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) { yield(llm.Frame{Type: llm.FrameEnd}, nil) }
}

func TestAnAdapterThatGivesNothingHasFailed(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			rig := newRig(t, func(f *chain.Feature) { f.Targets[0].Completer = nothing{} }, fake.New(), fake.New())
			got := do(t.Context(), rig, ask())
			require.Nil(t, got.err)
			require.Equal(t, "b", got.resp.Provider)
		})
	}
}

// TestASwitchFlippedMeanwhileIsObeyedByTheNextCall flips a provider off while a
// request waits for its retry, and while its first target is called.
func TestASwitchFlippedMeanwhileIsObeyedByTheNextCall(t *testing.T) {
	for _, value := range []string{"off", "off now"} {
		synctest.Test(t, func(t *testing.T) {
			rig := newRig(t, nil, fake.New(fake.Step{Wait: time.Second, Err: fake.FailsWith(llm.OutcomeConnect).Err}), fake.New(), fake.New())
			go func() {
				pass(500 * time.Millisecond)
				rig.Cut(rig.switches.set(t, map[string]string{"provider.b": value}))
			}()
			got := complete(t.Context(), rig, ask())
			require.Nil(t, got.err)
			require.Equal(t, "c", got.resp.Provider)
			require.Equal(t, map[string]int{"a": 1, "b": 0, "c": 1}, rig.counts())
		})
	}
}

func TestOffNowDuringAWaitEndsTheRequestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := fake.FailsWith(llm.OutcomeRateLimited)
		rig := newRig(t, func(f *chain.Feature) { f.OnRateLimit, f.Targets[0].Attempts = chain.RateLimitWait, 3 }, fake.New(limited, fake.Answer("late")))
		go func() {
			pass(300 * time.Millisecond)
			rig.Cut(rig.switches.set(t, map[string]string{"all": "off now"}))
		}()
		got := complete(t.Context(), rig, ask())
		require.Equal(t, llm.CodeSwitchedOff, got.err.Code)
		require.Equal(t, 300*time.Millisecond, got.took)
		require.Equal(t, map[string]int{"a": 1}, rig.counts())
	})
}

// flips is off now from its second look on, with nobody to tell of the flip:
// the request has looked already, and was not booked when the flip came.
type flips struct {
	before, after *kv.FlagSet
	looks         *int
}

func (f flips) Current(context.Context) (*kv.FlagSet, bool) {
	if *f.looks++; *f.looks == 1 {
		return f.before, false
	}
	return f.after, false
}

func TestAFlipBetweenLookAndBookingIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, nil, fake.New(fake.Hangs()))
		f := flips{kv.ParseFlags(nil), kv.ParseFlags(map[string]string{"feature.f": "off now"}), new(int)}
		rig.Router = chain.NewRouter(chain.Config{Switches: f})
		rig.Load([]chain.Feature{rig.feature})
		got := complete(t.Context(), rig, ask())
		require.Equal(t, llm.CodeSwitchedOff, got.err.Code)
		require.Zero(t, got.took)
	})
}

func TestARestartThatFindsNobodyIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart },
			fake.New(fake.Step{Pieces: []string{"half"}, Err: fake.FailsWith(llm.OutcomeUnavailable).Err}), fake.New(fake.FailsWith(llm.OutcomeConnect)))
		got := stream(t.Context(), rig, ask())
		require.Equal(t, llm.CodeInterrupted, got.err.Code)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, rig.counts())
	})
}

func TestADeadlineOfOneMillisecond(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				rig := newRig(t, nil, fake.New(fake.Hangs()), fake.New(fake.Hangs()))
				got := do(ctx, rig, ask())
				require.Equal(t, llm.CodeDeadline, got.err.Code)
				require.Equal(t, time.Millisecond, got.took)
				require.Equal(t, breaker.Closed, rig.state("a"))
				require.Equal(t, breaker.Closed, rig.state("b"))
			})
		})
	}
}
