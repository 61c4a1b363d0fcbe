package e2e

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

var primary = subjects.BreakerKey("a", "m")

// ill is a provider that is down until it is healed.
type ill struct {
	*fake.Provider
	down atomic.Bool
	hang atomic.Bool // down means silent instead of refusing
}

func newIll() *ill {
	p := new(ill)
	p.down.Store(true)
	p.Provider = fake.Func(func(int, *llm.Request) fake.Step {
		switch {
		case !p.down.Load():
			return fake.Answer("from a")
		case p.hang.Load():
			return fake.Hangs()
		}
		return fake.FailsWith(llm.OutcomeUnavailable)
	})
	return p
}

// inBubble gives every worker a connection of its own to one server.
func inBubble(t *testing.T) plan {
	srv := natstest.Server(t)
	return plan{dial: func() *nats.Conn { return natstest.Connect(t, srv) }, slots: 64}
}

func pass(d time.Duration) { <-time.After(d) }

func TestFleetOpensAfterTheThresholdInAll(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		a, p := newIll(), inBubble(t)
		p.providers = []*fake.Provider{a.Provider, fake.New(fake.Answer("from b"))}
		f := startFleet(t, 5, p)
		defer f.halt()
		for range 100 {
			got, err := ask(t.Context(), f.caller, hello)
			require.NoError(t, err)
			require.Equal(t, "from b", got.Content)
			synctest.Wait()
		}
		require.Equal(t, 5, a.Count(), "five failures in all, not five for each worker")
		for _, w := range f.workers {
			require.Equal(t, breaker.Open, w.state(primary))
		}
	})
}

// openFleet makes the primary's breaker open at every worker.
func openFleet(t *testing.T, f *fleet) {
	t.Helper()
	for range 5 {
		_, err := ask(t.Context(), f.caller, hello)
		require.NoError(t, err)
		synctest.Wait()
	}
	for _, w := range f.workers {
		require.Equal(t, breaker.Open, w.state(primary))
	}
}

// crowd sends n requests at once and waits for all their ends.
func (f *fleet) crowd(t *testing.T, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := ask(ctx, f.caller, hello); err != nil {
				t.Errorf("a request without an end: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestFleetSendsOneProbeInEachWindow(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		const cycles, callers = 100, 200
		a, p := newIll(), inBubble(t)
		p.providers = []*fake.Provider{a.Provider, fake.New(fake.Answer("from b"))}
		p.breaker = breaker.Settings{CoolDown: 10 * time.Second, MaxCoolDown: 10 * time.Second, ProbeTimeout: 5 * time.Second}
		f := startFleet(t, 5, p)
		defer f.halt()
		openFleet(t, f)
		for cycle := range cycles {
			before := a.Count()
			pass(12 * time.Second) // the cool-down and its jitter
			f.crowd(t, callers)
			require.Equal(t, 1, a.Count()-before, "calls in half-open window %d", cycle)
			synctest.Wait()
		}
		a.down.Store(false)
		pass(12 * time.Second)
		f.crowd(t, callers)
		before := a.Count()
		f.crowd(t, callers)
		require.Equal(t, callers, a.Count()-before, "one good probe brings all traffic back")
	})
}

func TestFleetProbesAgainAfterTheProberDied(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		a, p := newIll(), inBubble(t)
		p.providers = []*fake.Provider{a.Provider, fake.New(fake.Answer("from b"))}
		p.breaker = breaker.Settings{CoolDown: 10 * time.Second, MaxCoolDown: 10 * time.Second, ProbeTimeout: 4 * time.Second}
		f := startFleet(t, 5, p)
		openFleet(t, f)
		pass(12 * time.Second)

		a.hang.Store(true)
		before := a.Count()
		lost, cancel := context.WithCancel(t.Context())
		var orphan sync.WaitGroup
		orphan.Go(func() { _, _ = ask(lost, f.caller, hello) })
		require.Eventually(t, func() bool { return a.Count() == before+1 }, time.Second, time.Millisecond)
		began := time.Now()
		dead := -1
		for i, w := range f.workers {
			if s := w.breakers.Snapshot()[0]; s.State == breaker.HalfOpen && s.By == "worker-"+string(rune('0'+i)) {
				dead = i
			}
		}
		require.GreaterOrEqual(t, dead, 0)
		f.workers[dead].conn.Close() // as after kill -9: no word to anybody, the lease stays
		cancel()
		orphan.Wait()
		a.down.Store(false)

		lease := 5 * time.Second // ProbeTimeout and a second, in whole seconds
		for a.Count() == before+1 {
			one, done := context.WithTimeout(t.Context(), 100*time.Millisecond) // the server may still send one to the dead worker
			_, _ = ask(one, f.caller, hello)
			done()
			pass(20 * time.Millisecond)
			require.Less(t, time.Since(began), lease+500*time.Millisecond, "the next probe is late")
		}
		f.halt()
	})
}

func TestFleetAllTargetsOpenIsNotABypass(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		a, p := newIll(), inBubble(t)
		p.providers = []*fake.Provider{a.Provider}
		f := startFleet(t, 3, p)
		defer f.halt()
		openFleet(t, f)
		f.crowd(t, 50)
		got, err := ask(t.Context(), f.caller, hello)
		require.NoError(t, err)
		require.Equal(t, llm.CodeUnavailable, got.Error.Code)
		require.Positive(t, got.Error.RetryAfterMS)
		require.Equal(t, 5, a.Count())
	})
}
