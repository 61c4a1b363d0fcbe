package chain_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// purse is a Limiter of one tenant in one window, and its Grant. Nothing else
// than the requests of the test uses it.
type purse struct {
	requests, tokens int64 // left
	usd              float64
	held             chain.Use
	settled          []chain.Use
	degraded         bool
}

func (p *purse) Admit(context.Context, *llm.Request) (chain.Grant, error) {
	if p.requests == 0 {
		return nil, p.over(llm.CodeRateLimited, "requests_per_minute")
	}
	p.requests--
	return p, nil
}

func (p *purse) Cover(_ context.Context, u chain.Use) error {
	if u.Tokens > p.tokens {
		return p.over(llm.CodeRateLimited, "tokens_per_minute")
	}
	if u.USD > p.usd {
		return p.over(llm.CodeBudgetExhausted, "usd_per_day")
	}
	p.held = u
	return nil
}

func (p *purse) Settle(u chain.Use) {
	if u.Calls == 0 {
		p.requests++
	}
	p.tokens, p.usd = p.tokens-u.Tokens, p.usd-u.USD
	p.settled = append(p.settled, u)
}

func (p *purse) Degraded() bool { return p.degraded }

func (p *purse) over(code llm.Code, limit string) error {
	e := llm.Errorf(code, "too much for %s", limit)
	e.RetryAfterMS = 1500
	return &chain.OverLimit{Err: e, Limit: limit}
}

func rich() *purse { return &purse{requests: 10, tokens: 1e6, usd: 100} }

// limitedRig is a rig with a Limiter.
func limitedRig(t *testing.T, p *purse, tune func(*chain.Feature), fakes ...*fake.Provider) *rig {
	t.Helper()
	r := newRig(t, tune, fakes...)
	r.Router = chain.NewRouter(chain.Config{Switches: r.switches, Observer: r.events, Limiter: p})
	r.Load([]chain.Feature{r.feature})
	return r
}

func used(in, out int64) fake.Step {
	return fake.Step{Pieces: []string{"x"}, Usage: &llm.Usage{InputTokens: new(in), OutputTokens: new(out)}}
}

func TestALimitIsToldAndNothingIsAsked(t *testing.T) {
	for name, p := range map[string]*purse{
		"requests_per_minute": {tokens: 1e6, usd: 100},
		"tokens_per_minute":   {requests: 10, tokens: 100, usd: 100},
		"usd_per_day":         {requests: 10, tokens: 1e6, usd: 0.001},
	} {
		for way, do := range both {
			t.Run(name+"/"+way, func(t *testing.T) {
				before := *p
				rig := limitedRig(t, p, func(f *chain.Feature) {
					f.Targets[0].Price = chain.Price{Input: 10, Output: 10}
					f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackStatic}, "hidden"
				}, fake.New())
				got := do(t.Context(), rig, ask())
				require.NotNil(t, got.err, "no substitute hides a limit")
				want := llm.CodeRateLimited
				if name == "usd_per_day" {
					want = llm.CodeBudgetExhausted
				}
				require.Equal(t, want, got.err.Code)
				require.Contains(t, got.err.Message, name)
				require.EqualValues(t, 1500, got.err.RetryAfterMS)
				require.Zero(t, rig.fakes["a"].Count())
				require.Equal(t, []string{chain.EventRequestStarted, chain.EventLimitExceeded, chain.EventRequestFailed}, rig.events.names())
				require.Equal(t, name, rig.events.list[1].Limit)
				require.Equal(t, before.requests, p.requests)
				require.Equal(t, before.tokens, p.tokens)
			})
		}
	}
}

func TestARequestIsChargedForAllItsCalls(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			billed := failure(llm.OutcomeInvalidOutput, "")
			billed.Usage = &llm.Usage{InputTokens: new(int64(10)), OutputTokens: new(int64(5))}
			p := rich()
			rig := limitedRig(t, p, func(f *chain.Feature) {
				f.Targets[1].Price, f.Targets[2].Price = chain.Price{Input: 1e5, Output: 1e5}, chain.Price{Input: 1e4, Output: 1e4}
			}, fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New(fake.Fails(billed)), fake.New(used(20, 7)))
			req := ask()
			req.MaxTokens = 50
			require.Nil(t, do(t.Context(), rig, req).err)
			require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, rig.counts())
			require.Len(t, p.settled, 1)
			require.Equal(t, 3, p.settled[0].Calls)
			require.EqualValues(t, 42, p.settled[0].Tokens)
			require.InDelta(t, 15*0.1+27*0.01, p.settled[0].USD, 1e-9)
			require.EqualValues(t, 15+50+10, p.held.Tokens, "what was used, and what the last call may use")
			require.InDelta(t, 15*0.1+60*0.01, p.held.USD, 1e-9)
		})
	}
}

func TestATargetThatIsTooDearIsPassedOver(t *testing.T) {
	p := rich()
	p.usd = 0.02
	rig := limitedRig(t, p, func(f *chain.Feature) {
		f.Targets[0].Price, f.Targets[1].Price = chain.Price{Output: 1000}, chain.Price{Output: 10}
	}, fake.New(), fake.New(used(1, 1)))
	require.Nil(t, complete(t.Context(), rig, ask()).err)
	require.Equal(t, map[string]int{"a": 0, "b": 1}, rig.counts())

	p.usd = 0.02
	rig = limitedRig(t, p, func(f *chain.Feature) {
		f.Targets[0].Price, f.Targets[1].Price = chain.Price{Output: 10}, chain.Price{Output: 1000}
	}, fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New())
	got := complete(t.Context(), rig, ask())
	require.Equal(t, llm.CodeUnavailable, got.err.Code, "it failed before it could not be afforded")
	require.Equal(t, map[string]int{"a": 1, "b": 0}, rig.counts())
}

// Without max_tokens the longest answer of late is reserved, and prompts that
// come to more tokens than their bytes tell are expected to do so again.
func TestReservationsLearnFromCalls(t *testing.T) {
	p := rich()
	rig := limitedRig(t, p, func(f *chain.Feature) { f.Targets[0].Can.MaxOutputTokens = 0 },
		fake.New(used(1, 5000), used(18, 1800), used(1, 1), fake.Step{Pieces: []string{"x"}}, used(1, 1)))
	var reserved []int64
	for range 5 {
		require.Nil(t, complete(t.Context(), rig, ask()).err)
		reserved = append(reserved, p.held.Tokens)
	}
	const prompt = 9 // of "hi"
	require.Equal(t, []int64{prompt + 1024, prompt + 5000, 2*prompt + 4900, 2*prompt + 4747, 2*prompt + 4599}, reserved)
}

// What a provider adds to each prompt says nothing of the tokens of a long one,
// and a long prompt nothing of short ones.
func TestReservationsForLongAndShortPrompts(t *testing.T) {
	p := rich()
	rig := limitedRig(t, p, nil, fake.New(used(309, 1), used(1, 1), used(4008, 1), used(1, 1), used(1, 1)))
	long := ask()
	long.MaxTokens, long.Messages[0].Content = 10, llm.Text(strings.Repeat("x", 3*1996)) // about 2004
	short := ask()
	short.MaxTokens = 10
	var reserved []int64
	for _, req := range []*llm.Request{short, long, long, long, short} {
		require.Nil(t, complete(t.Context(), rig, req).err)
		reserved = append(reserved, p.held.Tokens)
	}
	require.Equal(t, []int64{9 + 10, 2004 + 300 + 10, 2004 + 300 + 10, 2*2004 + 10, 9 + 300 + 10}, reserved)
}

func TestReservationsOfOneTenantAreNotAnothers(t *testing.T) {
	p := rich()
	rig := limitedRig(t, p, func(f *chain.Feature) { f.Targets[0].Can.MaxOutputTokens = 0 }, fake.New(used(9, 50_000), used(9, 1), used(9, 1)))
	var reserved []int64
	for _, tenant := range []string{"acme", "globex", "acme"} {
		req := ask()
		req.Tenant = tenant
		require.Nil(t, complete(t.Context(), rig, req).err)
		reserved = append(reserved, p.held.Tokens)
	}
	require.Equal(t, []int64{9 + 1024, 9 + 1024, 9 + 50_000}, reserved)
}

// Whatever ends a request, its grant is settled once.
func TestEveryGrantIsSettled(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late := ask()
	late.JSONSchema = &llm.JSONSchema{Schema: []byte(`{"type":"object"}`)}
	for name, tc := range map[string]struct {
		ctx  context.Context
		req  *llm.Request
		step fake.Step
	}{
		"failure":        {t.Context(), ask(), fake.FailsWith(llm.OutcomeInvalidRequest)},
		"cancelled":      {gone, ask(), fake.Answer("x")},
		"invalid output": {t.Context(), late, fake.Answer("x")},
	} {
		for way, do := range both {
			t.Run(name+"/"+way, func(t *testing.T) {
				p := rich()
				require.NotNil(t, do(tc.ctx, limitedRig(t, p, nil, fake.New(tc.step)), tc.req).err)
				require.Len(t, p.settled, 1)
			})
		}
	}
	t.Run("the reader goes away", func(t *testing.T) {
		p := rich()
		req := ask()
		req.Stream = true
		for range limitedRig(t, p, nil, fake.New(used(1, 1))).Stream(t.Context(), req) {
			break
		}
		require.Len(t, p.settled, 1)
	})
	t.Run("the reader panics", func(t *testing.T) {
		p := rich()
		req := ask()
		req.Stream = true
		require.Panics(t, func() {
			for range limitedRig(t, p, nil, fake.New(used(1, 1))).Stream(t.Context(), req) {
				panic("reader")
			}
		})
		require.Len(t, p.settled, 1)
	})
}

func TestDegradedGrantsAreTold(t *testing.T) {
	p := rich()
	p.degraded = true
	rig := limitedRig(t, p, nil, fake.New(fake.Answer("x"), fake.FailsWith(llm.OutcomeConnect)))
	require.True(t, complete(t.Context(), rig, ask()).resp.Degraded)
	require.True(t, complete(t.Context(), rig, ask()).err.Degraded)
}

// A Limiter that knows no limit for a request gets no more of it.
type open struct{}

func (open) Admit(ctx context.Context, _ *llm.Request) (chain.Grant, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, nil
}

func TestNoLimitApplies(t *testing.T) {
	rig := newRig(t, nil, fake.New(fake.Answer("x")))
	rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Limiter: open{}})
	rig.Load([]chain.Feature{rig.feature})
	require.Nil(t, complete(t.Context(), rig, ask()).err)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("away"))
	require.Equal(t, llm.CodeCancelled, complete(ctx, rig, ask()).err.Code)
}

// What a provider says it has counted goes into budgets, prices and metrics.
func TestCountsThatCannotBeAreNotBelieved(t *testing.T) {
	for name, u := range map[string]*llm.Usage{
		"negative": {InputTokens: new(int64(-1_000_000)), OutputTokens: new(int64(5))},
		"endless":  {InputTokens: new(int64(5)), OutputTokens: new(int64(math.MaxInt64))},
	} {
		for way, do := range both {
			t.Run(name+"/"+way, func(t *testing.T) {
				p := rich()
				rig := limitedRig(t, p, func(f *chain.Feature) { f.Targets[0].Price = chain.Price{Input: 10, Output: 10} },
					fake.New(fake.Step{Pieces: []string{"abcd"}, Usage: u}))
				got := do(t.Context(), rig, ask())
				require.Nil(t, got.err)
				require.Equal(t, &llm.Usage{InputTokens: new(int64(1)), OutputTokens: new(int64(1)), Estimated: true}, got.resp.Usage)
				require.Equal(t, got.resp.Usage, got.resp.Attempts[0].Usage)
				require.InDelta(t, 2e-5, got.resp.CostUSD, 1e-9)
				require.EqualValues(t, 1e6-2, p.tokens)
			})
		}
	}
}
