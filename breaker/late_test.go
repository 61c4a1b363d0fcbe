package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
)

// mute sends the bucket's pushes elsewhere, so that workers learn late.
func (f *fleet) mute() {
	f.t.Helper()
	js, err := jetstream.New(f.nc)
	require.NoError(f.t, err)
	stream, err := js.Stream(f.t.Context(), "KV_llm_breakers")
	require.NoError(f.t, err)
	config := stream.CachedInfo().Config
	config.RePublish = &jetstream.RePublish{Source: config.RePublish.Source, Destination: "elsewhere.>"}
	_, err = js.UpdateStream(f.t.Context(), config)
	require.NoError(f.t, err)
}

// late makes a worker that has not heard of the probe which another has ended.
func late(t *testing.T, kind breaker.Kind) *fleet {
	t.Helper()
	f := newFleet(t, 2, breaker.Settings{Threshold: 1})
	f.fail(0)
	f.mute()
	f.probe(0).Done(t.Context(), breaker.Result{Kind: kind, Why: "timeout"})
	synctest.Wait()
	require.EqualValues(t, 1, f.groups[1].Snapshot()[0].Generation)
	return f
}

func TestLateWorkerWinsTheLeaseAndDoesNotCall(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := late(t, breaker.Failure)
		_, err := f.breakers[1].Acquire(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen)
		f.settled(breaker.Open)
		require.EqualValues(t, 3, f.groups[1].Snapshot()[0].Generation)
		f.probe(0) // its lease is free
	})
}

func TestLateWorkerFindsItClosed(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := late(t, breaker.Success)
		p, err := f.breakers[1].Acquire(t.Context())
		require.NoError(t, err)
		require.False(t, p.Probe())
		f.settled(breaker.Closed)
	})
}

func TestLoserOfTheLeaseKeepsQuiet(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		f.mute()
		f.probe(0)
		sent := len(f.messages())
		for range 1000 { // over a second
			_, err := f.breakers[1].Acquire(t.Context())
			require.ErrorIs(t, err, breaker.ErrOpen)
			elapse(time.Millisecond)
		}
		require.LessOrEqual(t, len(f.messages())-sent, 5)
	})
}

func TestProbeThatIsRateLimited(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		p := f.probe(0)
		deadline, ok := p.Deadline()
		require.True(t, ok)
		require.LessOrEqual(t, time.Until(deadline), 30*time.Second)
		p.Cool(t.Context(), time.Minute, "rate_limited")
		p.Cool(t.Context(), time.Second, "rate_limited")
		p.Done(t.Context(), breaker.Result{Kind: breaker.Neutral})
		f.settled(breaker.Open)
		require.Greater(t, f.untilProbe(), 59*time.Second)
	})
}
