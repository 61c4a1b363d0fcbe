package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// The tests in this file measure what fake time cannot show: how long news
// takes to reach a fleet over real sockets.

// onSockets gives every worker a TCP connection to one server that can restart.
func onSockets(t testing.TB) (plan, *natstest.Listener) {
	srv := natstest.ListenServer(t)
	return plan{dial: func() *nats.Conn {
		return srv.Dial(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // a test that stops servers expects errors
	}}, srv
}

func flagsBucket(t testing.TB, nc *nats.Conn) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	bucket, err := js.KeyValue(t.Context(), "llm_flags")
	require.NoError(t, err)
	return bucket
}

// load keeps callers busy until stop and notes when answers came.
type load struct {
	model, off atomic.Int64 // answers served by the model, answers that say switched_off
	lastModel  atomic.Int64 // unix ns of the last model-served answer
	settled    atomic.Int64 // unix ns since when no request may be served by the model; 0 is never
	leaked     atomic.Int64 // requests that were, all the same
	failed     atomic.Int64 // anything else
	stop       context.CancelFunc
	wg         sync.WaitGroup
}

func startLoad(nc *nats.Conn, callers int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{stop: cancel}
	for range callers {
		l.wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now().UnixNano()
				one, done := context.WithTimeout(ctx, time.Second)
				got, err := ask(one, nc, hello)
				done()
				switch {
				case ctx.Err() != nil:
				case err != nil:
					l.failed.Add(1)
				case got.ServedBy == llm.ServedByModel:
					l.lastModel.Store(time.Now().UnixNano())
					l.model.Add(1)
					if settled := l.settled.Load(); settled > 0 && began > settled {
						l.leaked.Add(1)
					}
				case got.Error != nil && got.Error.Code == llm.CodeSwitchedOff:
					l.off.Add(1)
				default:
					l.failed.Add(1)
				}
			}
		})
	}
	return l
}

func (l *load) end() {
	l.stop()
	l.wg.Wait()
}

// until polls a counter, since only the network can move it.
func until(t testing.TB, what string, reached func() bool) {
	t.Helper()
	require.Eventually(t, reached, time.Minute, time.Millisecond, what)
}

func percentile(d []time.Duration, p float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(float64(len(d))*p))]
}

// flipper flips the feature's switch under load, again and again.
type flipper struct {
	*fleet
	load   *load
	bucket jetstream.KeyValue
}

func newFlipper(t testing.TB) *flipper {
	p, _ := onSockets(t)
	p.providers = []*fake.Provider{fake.New(fake.Answer("served"))}
	f := &flipper{fleet: startFleet(t, 3, p)}
	f.bucket = flagsBucket(t, f.caller)
	f.load = startLoad(f.caller, 6)
	return f
}

func (f *flipper) end() {
	f.load.end()
	f.halt()
}

// flip returns how long after the acknowledged flip the last answer by the
// model came.
func (f *flipper) flip(t testing.TB) time.Duration {
	served := f.load.model.Load()
	until(t, "the model serves", func() bool { return f.load.model.Load() > served })
	_, err := f.bucket.PutString(t.Context(), "feature.f", "off")
	require.NoError(t, err)
	acknowledged := time.Now()
	for _, w := range f.workers {
		until(t, "every worker knows", func() bool {
			flags, _ := w.flags.Current(t.Context())
			_, off := flags.Off("f", "")
			return off
		})
	}
	f.load.settled.Store(time.Now().UnixNano())
	off := f.load.off.Load()
	until(t, "the switch holds", func() bool { return f.load.off.Load() > off+20 })
	late := max(0, time.Unix(0, f.load.lastModel.Load()).Sub(acknowledged))
	f.load.settled.Store(0)
	_, err = f.bucket.PutString(t.Context(), "feature.f", "on")
	require.NoError(t, err)
	return late
}

func TestASettledSwitchLeaksNothing(t *testing.T) {
	f := newFlipper(t)
	defer f.end()
	for range 50 {
		f.flip(t)
	}
	require.Zero(t, f.load.leaked.Load(), "requests served by the model with the switch settled")
	require.Zero(t, f.load.failed.Load())
}

// How long after an acknowledged flip the last answer by the model comes, over
// three workers under load. Run it with -benchtime 1000x.
func BenchmarkFlip(b *testing.B) {
	f := newFlipper(b)
	defer f.end()
	var late []time.Duration
	for b.Loop() {
		late = append(late, f.flip(b))
	}
	report(b, late)
}

func report(b *testing.B, d []time.Duration) {
	for name, p := range map[string]float64{"p50-µs": 0.5, "p99-µs": 0.99, "p99.9-µs": 0.999} {
		b.ReportMetric(float64(percentile(d, p).Microseconds()), name)
	}
}

// opener opens the primary's breaker at one of five workers, again and again.
type opener struct {
	*fleet
	breakers jetstream.KeyValue
}

func newOpener(t testing.TB) *opener {
	p, _ := onSockets(t)
	p.providers = []*fake.Provider{newIll().Provider, fake.New(fake.Answer("from b"))}
	p.breaker = breaker.Settings{Threshold: 1, CoolDown: time.Hour, MaxCoolDown: time.Hour}
	o := &opener{fleet: startFleet(t, 5, p)}
	js, err := jetstream.New(o.caller)
	require.NoError(t, err)
	o.breakers, err = js.KeyValue(t.Context(), "llm_breakers")
	require.NoError(t, err)
	return o
}

// open returns how long after the answer that opened it the last worker skips
// the primary.
func (o *opener) open(t testing.TB) time.Duration {
	_, err := ask(t.Context(), o.caller, hello)
	require.NoError(t, err)
	began := time.Now()
	for _, w := range o.workers {
		until(t, "every worker knows", func() bool { return w.state(primary) == breaker.Open })
	}
	took := time.Since(began)
	o.reset(t)
	return took
}

// reset closes the breaker as an operator would. A worker that is just about to
// share that it opened overrules a reset, so it may take more than one.
func (o *opener) reset(t testing.TB) {
	for _, w := range o.workers {
		until(t, "every worker has closed", func() bool {
			if w.state(primary) == breaker.Closed {
				return true
			}
			require.NoError(t, o.breakers.Delete(t.Context(), primary))
			return false
		})
	}
}

func TestAnOpenBreakerIsObeyedByAll(t *testing.T) {
	o := newOpener(t)
	defer o.halt()
	for range 20 {
		o.open(t)
	}
}

// How long the news of an open breaker takes to the last of five workers. Run
// it with -benchtime 1000x.
func BenchmarkOpen(b *testing.B) {
	o := newOpener(b)
	defer o.halt()
	var took []time.Duration
	for b.Loop() {
		took = append(took, o.open(b))
	}
	report(b, took)
}

func TestNATSRestartUnderLoad(t *testing.T) {
	p, srv := onSockets(t)
	a := newIll()
	a.down.Store(false)
	p.providers = []*fake.Provider{a.Provider, fake.New(fake.Answer("from b"))}
	p.breaker = breaker.Settings{CoolDown: time.Hour, MaxCoolDown: time.Hour}
	f := startFleet(t, 3, p)
	defer f.halt()
	l := startLoad(f.caller, 6)
	defer l.end()
	until(t, "it serves", func() bool { return l.model.Load() > 100 })

	for round := range 3 {
		srv.Stop()
		until(t, "everybody noticed", func() bool { return !f.caller.IsConnected() })
		srv.Restart()
		for _, w := range f.workers {
			until(t, "reconnected", w.conn.IsConnected)
		}
		reconnected := time.Now()
		operator := p.dial()
		var bucket jetstream.KeyValue
		until(t, "JetStream is back", func() bool {
			js, err := jetstream.New(operator)
			if err != nil {
				return false
			}
			bucket, err = js.KeyValue(t.Context(), "llm_flags")
			return err == nil
		})
		_, err := bucket.PutString(t.Context(), "provider.z", fmt.Sprint("off round ", round))
		require.NoError(t, err)
		for _, w := range f.workers {
			until(t, "the mirror is right", func() bool {
				flags, degraded := w.flags.Current(t.Context())
				flag, _ := flags.Get("provider.z")
				return !degraded && !w.breakers.Degraded() && flag.Reason == fmt.Sprint("round ", round)
			})
		}
		require.Less(t, time.Since(reconnected), time.Second, "mirrors are right again")
		served := l.model.Load()
		until(t, "it serves again", func() bool { return l.model.Load() > served+100 })
		operator.Close()
	}
	t.Logf("%d answers, %d clear errors", l.model.Load(), l.failed.Load())
}
