package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

// prices of a and b, in dollars for a million tokens.
var prices = []chain.Price{{Input: 10, Output: 30}, {Input: 1, Output: 2}}

func priced(f *chain.Feature) {
	for i := range f.Targets {
		f.Targets[i].Price = prices[i]
		f.Targets[i].Attempts = 2
	}
}

func tokens(in, out int64) *llm.Usage { return &llm.Usage{InputTokens: &in, OutputTokens: &out} }

// refused is a 503, and useless an answer that is billed and of no use.
func refused() fake.Step {
	f := failure(llm.OutcomeUnavailable, 0)
	f.Status = 503
	return fake.Step{Wait: time.Second, Err: f}
}

func useless() fake.Step {
	f := provider.Fail(llm.OutcomeInvalidOutput, nil)
	f.Status, f.Usage = 200, tokens(100, 50)
	return fake.Step{Wait: time.Second, Err: f}
}

// What a request cost is the sum of what its attempts cost, each at the price
// of its own model, and every one of them is listed, whoever serves in the end.
func TestCrashAccounting(t *testing.T) {
	static := func(f *chain.Feature) { f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackStatic}, "sorry" }
	served := fake.Step{Wait: time.Second, Pieces: []string{"good"}, Usage: tokens(200, 20)}
	for name, c := range map[string]struct {
		b        []fake.Step
		tune     func(*chain.Feature)
		classes  []llm.Outcome
		costs    []float64
		servedBy llm.ServedBy
		code     llm.Code
	}{
		"the second serves": {
			b: []fake.Step{served}, classes: []llm.Outcome{llm.OutcomeUnavailable, llm.OutcomeInvalidOutput, llm.OutcomeOK},
			costs: []float64{0, 0.0025, 0.00024}, servedBy: llm.ServedByModel},
		"nobody serves": {
			b: []fake.Step{useless(), refused()}, classes: []llm.Outcome{llm.OutcomeUnavailable, llm.OutcomeInvalidOutput, llm.OutcomeInvalidOutput, llm.OutcomeUnavailable},
			costs: []float64{0, 0.0025, 0.0002, 0}, code: llm.CodeUnavailable},
		"the fallback serves": {
			b: []fake.Step{useless(), refused()}, tune: static, classes: []llm.Outcome{llm.OutcomeUnavailable, llm.OutcomeInvalidOutput, llm.OutcomeInvalidOutput, llm.OutcomeUnavailable},
			costs: []float64{0, 0.0025, 0.0002, 0}, servedBy: llm.ServedByFallback},
	} {
		for way, streamed := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				natstest.Bubble(t, func(t *testing.T) {
					p := inBubble(t)
					p.providers = []*fake.Provider{fake.New(refused(), useless()), fake.New(c.b...)}
					p.feature = func(f *chain.Feature) {
						if priced(f); c.tune != nil {
							c.tune(f)
						}
					}
					got := askOnce(t, p, question{stream: streamed, timeout: 10 * time.Second})
					attempts := got.Attempts
					if c.code != "" {
						require.Equal(t, c.code, got.Error.Code)
						attempts = got.Error.Attempts
					} else {
						require.Nil(t, got.Error)
						require.Equal(t, c.servedBy, got.ServedBy)
					}
					require.Len(t, attempts, len(c.classes))
					var total float64
					for i, a := range attempts {
						require.Equal(t, c.classes[i], a.Class)
						require.InDelta(t, c.costs[i], a.CostUSD, 1e-12, "attempt %d", i)
						require.EqualValues(t, 1000, a.MS)
						require.Equal(t, map[bool]int{true: 503, false: 200}[a.Class == llm.OutcomeUnavailable], a.HTTPStatus)
						total += a.CostUSD
					}
					if c.code == "" {
						require.InDelta(t, total, got.CostUSD, 1e-12)
					}
				})
			})
		}
	}
}

// A stream that is cut is billed although its usage never comes, so what was
// received is counted.
func TestCrashAccountingOfACutStream(t *testing.T) {
	for _, onInterrupt := range []chain.OnInterrupt{chain.InterruptError, chain.InterruptRestart} {
		t.Run(string(onInterrupt), func(t *testing.T) {
			server := simtest.Start(t)
			require.NoError(t, server.Control(sim.Rule{Fault: "cut-after-40-t60", Provider: "ollama"}))
			p := inBubble(t)
			p.providers = make([]*fake.Provider, 2) // their places
			p.feature = func(f *chain.Feature) {
				priced(f)
				f.OnInterrupt = onInterrupt
				f.Targets[0].Completer, f.Targets[1].Completer = adapter(t, "ollama", server), adapter(t, "openai", server)
			}
			got := askOnce(t, p, question{stream: true, timeout: 10 * time.Second})
			attempts := got.Attempts
			if onInterrupt == chain.InterruptError {
				require.Equal(t, llm.CodeInterrupted, got.Error.Code)
				attempts = got.Error.Attempts
			}
			cut := attempts[0]
			require.Equal(t, llm.OutcomeInterrupted, cut.Class)
			require.True(t, cut.Usage.Estimated)
			require.Greater(t, *cut.Usage.OutputTokens, int64(30), "40 words came")
			require.Positive(t, cut.FirstTokenMS)
			require.InDelta(t, (float64(*cut.Usage.InputTokens)*10+float64(*cut.Usage.OutputTokens)*30)/1e6, cut.CostUSD, 1e-12)
			if onInterrupt == chain.InterruptRestart {
				require.Nil(t, got.Error)
				require.False(t, attempts[1].Usage.Estimated)
				require.InDelta(t, cut.CostUSD+attempts[1].CostUSD, got.CostUSD, 1e-12)
			}
		})
	}
}
