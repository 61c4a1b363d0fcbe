package chain_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

func TestHangingTargetsLeaveTimeForTheNext(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, func(f *chain.Feature) { f.Targets[0].Timeout = 4 * time.Second },
					fake.New(fake.Hangs()), fake.New(fake.Hangs()), fake.New(fake.Answer("c")))
				got := do(t.Context(), rig, ask())
				require.Nil(t, got.err)
				// a gets an even share of ten seconds (its own limit is longer), b half of what is left
				require.InDelta(t, 3333, got.resp.Attempts[0].MS, 1)
				require.InDelta(t, 3333, got.resp.Attempts[1].MS, 1)
			})
		})
	}
}

func TestTheLastTargetGetsAllThatRemains(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, func(f *chain.Feature) {
					for i := range f.Targets {
						f.Targets[i].Timeout = 2 * time.Second
						f.Targets[i].Limits = provider.Timeouts{FirstToken: time.Second}
					}
				}, fake.New(fake.Hangs()), fake.New(fake.Step{Wait: 7 * time.Second, Pieces: []string{"slow"}}))
				got := do(t.Context(), rig, ask())
				require.Nil(t, got.err, "neither its timeout nor its first-token limit may cut the last target")
				require.Equal(t, "slow", got.resp.Content)
			})
		})
	}
}

func TestDeadlineIsOneForTheWholeOperation(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, nil, fake.New(fake.Hangs()), fake.New(fake.Hangs()))
				ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, llm.ErrDeadline)
				defer cancel()
				got := do(ctx, rig, ask())
				require.Equal(t, llm.CodeDeadline, got.err.Code)
				require.Equal(t, 3*time.Second, got.took)
				require.Len(t, got.err.Attempts, 2)
			})
		})
	}
}

func TestLateOnArrivalCallsNobody(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, nil, fake.New())
				ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
				defer cancel()
				got := do(ctx, rig, ask())
				require.Equal(t, llm.CodeDeadline, got.err.Code)
				require.Equal(t, map[string]int{"a": 0}, rig.counts())
			})
		})
	}
}

func TestATimedOutTargetIsAskedAgainAfterTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.FailsWith(llm.OutcomeTimeout), fake.Answer("second try"))
		rig := newRig(t, func(f *chain.Feature) { f.Targets[0].Attempts = 2 }, a, fake.New(fake.FailsWith(llm.OutcomeConnect)))
		got := complete(t.Context(), rig, ask())
		require.Nil(t, got.err)
		require.Equal(t, "second try", got.resp.Content)
		require.Equal(t, map[string]int{"a": 2, "b": 1}, rig.counts())
	})
}

func TestRetryAfterIsAFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.Fails(failure(llm.OutcomeUnavailable, "", 2*time.Second)), fake.Answer("ok"))
		rig := newRig(t, func(f *chain.Feature) { f.Targets[0].Attempts = 2 }, a)
		got := complete(t.Context(), rig, ask())
		require.Nil(t, got.err)
		require.GreaterOrEqual(t, got.took, 2*time.Second)
		require.Less(t, got.took, 2*time.Second+200*time.Millisecond)
	})
}

// remember has the first target's breaker count failures for so long.
func (r *rig) remember(window time.Duration) {
	r.breakers.Breaker(r.feature.Targets[0].Breaker.Key(), breaker.Settings{Window: window})
}

// TestACallerInAHurryOpensNoBreaker has callers ask a model that hangs, or is
// slower than they care to wait.
func TestACallerInAHurryOpensNoBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		feature, target, caller time.Duration // target 0 is none of its own
		want                    breaker.State
	}{
		"in a great hurry":             {10 * time.Second, 0, 50 * time.Millisecond, breaker.Closed},
		"less than half":               {10 * time.Second, 0, 4900 * time.Millisecond, breaker.Closed},
		"half":                         {10 * time.Second, 0, 5 * time.Second, breaker.Open},
		"half of the target's own":     {60 * time.Second, 4 * time.Second, 2 * time.Second, breaker.Open},
		"less than that":               {60 * time.Second, 4 * time.Second, 1900 * time.Millisecond, breaker.Closed},
		"a slow feature, not for long": {5 * time.Minute, 0, 9 * time.Second, breaker.Closed},
		"a slow feature, ten seconds":  {5 * time.Minute, 0, 10 * time.Second, breaker.Open},
		"a fast target, all of it":     {10 * time.Second, 300 * time.Millisecond, 300 * time.Millisecond, breaker.Open},
		"a fast target, half of it":    {10 * time.Second, 300 * time.Millisecond, 150 * time.Millisecond, breaker.Closed},
		"under two seconds, one":       {1500 * time.Millisecond, 0, time.Second, breaker.Open},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, func(f *chain.Feature) { f.Timeout, f.Targets[0].Timeout = tc.feature, tc.target }, fake.New(fake.Hangs()))
				rig.remember(time.Hour)
				for range 5 {
					ctx, cancel := context.WithTimeoutCause(t.Context(), tc.caller, llm.ErrDeadline)
					got := complete(ctx, rig, ask())
					require.Equal(t, llm.CodeDeadline, got.err.Code)
					cancel()
				}
				require.Equal(t, tc.want, rig.state("a"))
			})
		})
	}
}

// TestAHurriedCallerOfAChainOpensNoBreaker has a caller whose time would do for
// one target, and is shared by three.
func TestAHurriedCallerOfAChainOpensNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func() *fake.Provider { return fake.New(fake.Hangs()) }
		rig := newRig(t, func(f *chain.Feature) { f.Timeout = 30 * time.Second }, hangs(), hangs(), hangs())
		rig.remember(time.Hour)
		for range 5 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 6*time.Second, llm.ErrDeadline)
			_ = complete(ctx, rig, ask())
			cancel()
		}
		require.Equal(t, breaker.Closed, rig.state("a"), "two seconds of the ten that an unhurried caller gives it")
		for range 5 {
			_ = complete(t.Context(), rig, ask())
		}
		require.Equal(t, breaker.Open, rig.state("a"))
	})
}

func TestATargetAloneTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, func(f *chain.Feature) { f.Timeout = 5 * time.Second }, fake.New(fake.Hangs()))
		for range 5 {
			require.Equal(t, llm.CodeDeadline, complete(t.Context(), rig, ask()).err.Code)
		}
		require.Equal(t, breaker.Open, rig.state("a"))
		got := complete(t.Context(), rig, ask())
		require.Equal(t, llm.CodeUnavailable, got.err.Code)
		require.Contains(t, got.err.Message, "circuit")
		require.Empty(t, got.err.Attempts)
		require.Positive(t, got.err.RetryAfterMS)
		require.Equal(t, map[string]int{"a": 5}, rig.counts(), "all open is not a bypass")
	})
}

func TestACoolingTargetIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.Fails(failure(llm.OutcomeRateLimited, "", 5*time.Second)), fake.Answer("a again"))
		rig := newRig(t, nil, a, fake.New(fake.Answer("b")))
		require.Equal(t, "b", complete(t.Context(), rig, ask()).resp.Content)
		require.Equal(t, "b", complete(t.Context(), rig, ask()).resp.Content)
		require.Equal(t, map[string]int{"a": 1, "b": 2}, rig.counts())
		pass(6 * time.Second)
		require.Equal(t, "a again", complete(t.Context(), rig, ask()).resp.Content)
	})
}

func TestAllTargetsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, nil, fake.New(fake.Fails(failure(llm.OutcomeRateLimited, "", 8*time.Second))), fake.New(fake.Fails(failure(llm.OutcomeRateLimited, "", 3*time.Second))))
		for range 2 { // told by the providers, then by the breakers
			got := complete(t.Context(), rig, ask())
			require.Equal(t, llm.CodeRateLimited, got.err.Code)
			require.InDelta(t, 3150, got.err.RetryAfterMS, 155, "workers come back spread over a tenth of the wait")
		}
	})
}
