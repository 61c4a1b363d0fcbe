package e2e

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// outage is a provider that is down for a while under steady traffic.
type outage struct {
	name     string
	down     fake.Step        // what a call meets meanwhile
	each     time.Duration    // how long such a call takes
	settings breaker.Settings // of the primary
	coolDown time.Duration    // the longest that is in force when it is back
}

const (
	outageLasts = time.Minute
	outageRate  = 10 // requests a second
	callTimeout = 2 * time.Second
)

func outages() []outage {
	refuses, silent := fake.FailsWith(llm.OutcomeConnect), fake.Hangs()
	same := breaker.Settings{CoolDown: 10 * time.Second, MaxCoolDown: 10 * time.Second}
	doubling := breaker.Settings{CoolDown: 5 * time.Second, MaxCoolDown: time.Minute}
	return []outage{
		{"refuses, the same cool-down always", refuses, 0, same, 10 * time.Second},
		{"refuses, a longer cool-down each time", refuses, 0, doubling, 40 * time.Second},
		{"is silent, the same cool-down always", silent, callTimeout, same, 10 * time.Second},
	}
}

// answered is one request of the traffic.
type answered struct {
	at  time.Duration // since the outage began
	end end
}

func TestCrashDownForAMinute(t *testing.T) {
	for _, o := range outages() {
		for way, streamed := range ways {
			t.Run(o.name+"/"+way, func(t *testing.T) {
				natstest.Bubble(t, func(t *testing.T) { o.run(t, streamed) })
			})
		}
	}
}

func (o outage) run(t *testing.T, streamed bool) {
	var began time.Time
	a := fake.Func(func(int, *llm.Request) fake.Step {
		if time.Since(began) < outageLasts {
			return o.down
		}
		return fake.Answer("from a")
	})
	p := inBubble(t)
	p.providers = []*fake.Provider{a, fake.New(fake.Answer("from b"))}
	p.breaker = o.settings
	f := startFleet(t, 3, p)
	defer f.halt()
	book := newLedger(t, f.caller)
	began = time.Now()
	traffic := steady(t, book, streamed, outageLasts+o.coolDown+o.coolDown/10+5*time.Second)

	for _, one := range traffic {
		require.Nil(t, one.end.Error, "at %s", one.at)
		require.LessOrEqual(t, one.end.took, o.each+10*time.Millisecond, "at %s: b follows at once", one.at)
	}
	o.probedAlone(t, a.Calls(), began)
	o.back(t, a.Calls(), began, traffic)
	f.settle(t, book)
}

// steady asks at an even rate for so long.
func steady(t *testing.T, book *ledger, streamed bool, long time.Duration) []answered {
	t.Helper()
	traffic := make([]answered, int(long.Seconds()*outageRate))
	began := time.Now()
	var wg sync.WaitGroup
	for i := range traffic {
		wg.Go(func() {
			traffic[i].at = time.Since(began)
			var err error
			if traffic[i].end, err = book.ask(t.Context(), question{stream: streamed, timeout: 10 * time.Second}); err != nil {
				t.Error(err)
			}
		})
		natstest.Advance(time.Second / outageRate)
	}
	wg.Wait()
	synctest.Wait()
	return traffic
}

// probedAlone demands that the calls which opened the breaker are few, and that
// each later one was alone in its half-open window, over all workers.
func (o outage) probedAlone(t *testing.T, calls []fake.Call, began time.Time) {
	t.Helper()
	inFlight := int(o.each.Seconds() * outageRate)
	opened := 0
	for opened < len(calls) && calls[opened].At.Sub(began) <= o.each+time.Second {
		opened++
	}
	require.LessOrEqual(t, opened, 5+inFlight, "calls until it was open: the threshold and what was in flight")
	last := calls[opened-1].At
	probes := 0
	for _, c := range calls[opened:] {
		if c.At.Sub(began) >= outageLasts {
			break
		}
		probes++
		require.GreaterOrEqual(t, c.At.Sub(last), o.settings.CoolDown-o.each, "two calls in one window, at %s", c.At.Sub(began))
		last = c.At
	}
	require.Positive(t, probes)
	require.LessOrEqual(t, probes, int(outageLasts/o.settings.CoolDown))
}

// back demands that the first call after the recovery came when its cool-down
// was over, and that all traffic is back on the primary from its success on.
func (o outage) back(t *testing.T, calls []fake.Call, began time.Time, traffic []answered) {
	t.Helper()
	var probe time.Duration
	for _, c := range calls {
		if probe = c.At.Sub(began); probe >= outageLasts {
			break
		}
	}
	require.LessOrEqual(t, probe-outageLasts, o.coolDown+o.coolDown/10+time.Second/outageRate, "the first probe after the recovery")
	for _, one := range traffic {
		if one.at > probe+time.Second/outageRate {
			require.Equal(t, "from a", one.end.Content, "at %s, the probe having succeeded at %s", one.at, probe)
		}
	}
}

// A provider that says 429 is left alone by all workers for as long as it asks,
// and one request after each wait learns that it still does.
func TestCrashLimitedForAMinute(t *testing.T) {
	for way, streamed := range ways {
		t.Run(way, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				const wait = 2 * time.Second
				a := fake.New(fake.Fails(failure(llm.OutcomeRateLimited, wait)))
				p := inBubble(t)
				p.providers = []*fake.Provider{a, fake.New(fake.Answer("from b"))}
				f := startFleet(t, 3, p)
				defer f.halt()
				book := newLedger(t, f.caller)
				for _, one := range steady(t, book, streamed, outageLasts) {
					require.Nil(t, one.end.Error)
					require.Equal(t, "b", one.end.Provider)
				}
				require.LessOrEqual(t, a.Count(), int(outageLasts/wait), "calls in a minute of waits")
				for _, w := range f.workers {
					require.NotEqual(t, breaker.Open, w.state(primary), "a limit is no outage")
				}
				f.settle(t, book)
			})
		})
	}
}
