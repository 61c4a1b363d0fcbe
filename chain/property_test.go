package chain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

// scenario is a random chain with a random script of failures for each target.
// A target with a script that is used up answers.
type scenario struct {
	attempts []int
	scripts  [][]provider.Failure
	deadline time.Duration
	class    llm.Class
	limit    chain.OnRateLimit
	failover bool
}

var randomFailures = []provider.Failure{
	{Outcome: llm.OutcomeConnect}, {Outcome: llm.OutcomeUnavailable}, {Outcome: llm.OutcomeUnavailable, Detail: provider.DetailNeutral},
	{Outcome: llm.OutcomeUnavailable, Detail: provider.DetailSamePath}, {Outcome: llm.OutcomeTimeout}, {Outcome: llm.OutcomeFirstTokenTimeout},
	{Outcome: llm.OutcomeIdleTimeout}, {Outcome: llm.OutcomeOverloaded}, {Outcome: llm.OutcomeRateLimited}, {Outcome: llm.OutcomeQuotaExhausted},
	{Outcome: llm.OutcomeInvalidRequest}, {Outcome: llm.OutcomeInvalidRequest, Detail: provider.DetailUnsupported}, {Outcome: llm.OutcomeContextLength},
	{Outcome: llm.OutcomeAuth}, {Outcome: llm.OutcomeContentFiltered}, {Outcome: llm.OutcomeInvalidOutput}, {Outcome: llm.OutcomeUnavailable, NoRetry: true},
}

func randomScenario(r *rand.Rand) scenario {
	s := scenario{deadline: time.Duration(5+r.IntN(55)) * time.Second, failover: r.IntN(8) > 0,
		class: []llm.Class{llm.ClassInteractive, llm.ClassBackground}[r.IntN(2)],
		limit: []chain.OnRateLimit{chain.RateLimitFailOver, chain.RateLimitWait, chain.RateLimitFail}[r.IntN(3)]}
	for range 1 + r.IntN(4) {
		s.attempts = append(s.attempts, 1+r.IntN(3))
		var script []provider.Failure
		for range r.IntN(4) {
			script = append(script, randomFailures[r.IntN(len(randomFailures))])
		}
		s.scripts = append(s.scripts, script)
	}
	return s
}

// model says in the plainest way what the failure table asks for: which target
// is called in which order, and whether the last call answers. It knows nothing
// of time, so the scenarios leave enough of it.
func (s scenario) model() (order []int, answered bool) {
	queue, calls := make([]int, len(s.attempts)), make([]int, len(s.attempts))
	for i := range queue {
		queue[i] = i
	}
	if !s.failover {
		queue = queue[:1]
	}
	cooling := map[int]bool{}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if cooling[t] {
			continue
		}
		order = append(order, t)
		calls[t]++
		if calls[t] > len(s.scripts[t]) {
			return order, true
		}
		f := s.scripts[t][calls[t]-1]
		left, others := s.attempts[t]-calls[t], s.failover
		if f.NoRetry {
			left = 0
		}
		again, behind, move := false, false, false
		switch f.Outcome {
		case llm.OutcomeConnect:
			again, move = left > 0, true
		case llm.OutcomeUnavailable:
			again, move = left > 0 && f.Detail != provider.DetailSamePath, true
		case llm.OutcomeTimeout:
			behind, move = left > 0, true
		case llm.OutcomeFirstTokenTimeout, llm.OutcomeIdleTimeout, llm.OutcomeQuotaExhausted:
			move = true
			cooling[t] = f.Outcome == llm.OutcomeQuotaExhausted
		case llm.OutcomeOverloaded:
			again, move = left > 0 && calls[t] == 1, true
		case llm.OutcomeInvalidOutput:
			again, move = left > 0 && calls[t] == 1, true
		case llm.OutcomeRateLimited:
			again = left > 0 && (s.class == llm.ClassBackground || s.limit == chain.RateLimitWait)
			move = s.limit != chain.RateLimitFail
		case llm.OutcomeInvalidRequest:
			move = f.Detail == provider.DetailUnsupported
		}
		switch {
		case again, behind && !others:
			queue = append([]int{t}, queue...)
		case behind:
			queue = append(queue, t)
		case move && others:
		default:
			return order, false
		}
	}
	return order, false
}

func (s scenario) rig(t *testing.T, order *[]int) *rig {
	var fakes []*fake.Provider
	for i, script := range s.scripts {
		fakes = append(fakes, fake.Func(func(call int, _ *llm.Request) fake.Step {
			*order = append(*order, i)
			if call < len(script) {
				return fake.Fails(new(script[call]))
			}
			return fake.Answer(fmt.Sprint("answer of ", i))
		}))
	}
	return newRig(t, func(f *chain.Feature) {
		f.Timeout, f.OnRateLimit = s.deadline, s.limit
		for i := range f.Targets {
			f.Targets[i].Attempts = s.attempts[i]
		}
	}, fakes...)
}

// Any chain, any failures: exactly the calls that the table allows, in its
// order, and exactly one end inside the deadline.
func TestChainsFollowTheTable(t *testing.T) {
	const scenarios = 10_000
	r := rand.New(rand.NewPCG(1, 2))
	synctest.Test(t, func(t *testing.T) {
		for n := range scenarios {
			s := randomScenario(r)
			want, answered := s.model()
			var order []int
			rig := s.rig(t, &order)
			req := ask()
			req.Class, req.NoFailover = s.class, !s.failover
			do := complete
			if n%2 == 1 {
				do = stream
			}
			got := do(t.Context(), rig, req)
			require.Equal(t, want, order, "%+v", s)
			require.Equal(t, answered, got.err == nil, "%+v: %v", s, got.err)
			require.Equal(t, answered, got.resp != nil, "%+v", s)
			require.LessOrEqual(t, got.took, s.deadline+50*time.Millisecond)
		}
	})
}
