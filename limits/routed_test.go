package limits_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// on are switches that nobody has set.
type on struct{}

func (on) Current(context.Context) (*kv.FlagSet, bool) { return kv.ParseFlags(nil), false }

// routed puts the chain around the limits of each worker, over a dear and a
// cheap model.
func routed(t *testing.T, f *fleet, dear, cheap *fake.Provider) (routers []*chain.Router) {
	t.Helper()
	for _, w := range f.workers {
		group, err := breaker.New(breaker.Config{})
		require.NoError(t, err)
		target := func(name string, p *fake.Provider, price chain.Price) chain.Target {
			return chain.Target{Provider: name, Model: "m", Completer: p, Attempts: 1, Price: price, Breaker: group.Breaker(subjects.BreakerKey(name, "m"), breaker.Settings{})}
		}
		r := chain.NewRouter(chain.Config{Switches: on{}, Limiter: w.Limiter})
		r.Load([]chain.Feature{{Name: chat, Timeout: time.Minute, Class: llm.ClassInteractive, Targets: []chain.Target{
			target("dear", dear, chain.Price{Input: 10, Output: 100}), target("cheap", cheap, chain.Price{Input: 1, Output: 10})}}})
		routers = append(routers, r)
	}
	return routers
}

// answers are of up to most tokens, take a moment, and now and then fail with
// or without usage.
func answers(most int64) *fake.Provider {
	return fake.Func(func(int, *llm.Request) fake.Step {
		usage := &llm.Usage{InputTokens: new(1 + rand.N(int64(9))), OutputTokens: new(1 + rand.N(most))}
		step := fake.Step{Wait: rand.N(300 * millisecond), Pieces: []string{"x"}, Usage: usage}
		switch rand.N(10) {
		case 0:
			step = fake.FailsWith(llm.OutcomeConnect)
		case 1:
			step.Pieces = nil // nobody is content with that, and it is paid for
		}
		return step
	})
}

// Whatever parallel callers do at the edge, and whatever becomes of their calls,
// what the fleet has used passes the limit by no more than one request takes; and
// it comes near it.
func TestWhatIsUsedKeepsWithinTheLimit(t *testing.T) {
	const most = 200 // tokens of an answer
	for name, tc := range map[string]struct {
		limit limits.Limit
		spent func(tokens int64, usd float64) float64
		bound float64
		one   float64 // the most that one request uses, both targets
	}{
		"tokens":  {tokens(20_000), func(n int64, _ float64) float64 { return float64(n) }, 20_000, 2 * (most + 9)},
		"dollars": {dollars(1), func(_ int64, usd float64) float64 { return usd }, 1, (9*11 + most*110) / 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 5, every(tc.limit), func(t *testing.T, f *fleet) {
				routers := routed(t, f, answers(most), answers(most))
				var mu sync.Mutex
				var group sync.WaitGroup
				var used int64
				var usd float64
				refused := 0
				for i := range 400 {
					group.Go(func() {
						<-time.After(rand.N(3 * time.Second))
						resp, err := routers[i%5].Complete(t.Context(), &llm.Request{ID: fmt.Sprint(i), Tenant: acme, Feature: chat, MaxTokens: most,
							Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}})
						mu.Lock()
						defer mu.Unlock()
						attempts := attemptsOf(resp, err)
						if _, over := errors.AsType[*chain.OverLimit](err); over {
							refused++
							require.Empty(t, attempts)
						}
						for _, a := range attempts {
							usd += a.CostUSD
							if a.Usage != nil {
								used += *a.Usage.InputTokens + *a.Usage.OutputTokens
							}
						}
					})
				}
				group.Wait()
				spent := tc.spent(used, usd)
				t.Logf("%d of 400 refused, %d tokens and $%.3f used", refused, used, usd)
				require.NotZero(t, refused)
				require.LessOrEqual(t, spent, tc.bound+tc.one)
				require.GreaterOrEqual(t, spent, 0.8*tc.bound)
				natstest.Advance(2500 * millisecond)
			})
		})
	}
}

func attemptsOf(resp *llm.Response, err error) []llm.Attempt {
	if resp != nil {
		return resp.Attempts
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Attempts
	}
	return nil
}
