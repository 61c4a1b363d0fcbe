package e2e

import (
	"context"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func TestProcessesAnswerInsideTheDeadline(t *testing.T) {
	s := newSite(t)
	s.start(t, 3)
	s.fail(t, "hang")
	began := time.Now()
	got, err := ask(t.Context(), s.caller, `{"prompt":"hello","timeout_ms":4000}`)
	require.NoError(t, err)
	require.Nil(t, got.Error)
	require.Equal(t, "backup", got.Provider)
	require.Less(t, time.Since(began), 4*time.Second)
	require.Len(t, got.Attempts, 2)
	require.Equal(t, llm.OutcomeTimeout, got.Attempts[0].Class)
}

// states follows one breaker as an operator with a plain KV watch would.
func (s *site) states(t *testing.T) <-chan string {
	t.Helper()
	js, err := jetstream.New(s.caller)
	require.NoError(t, err)
	bucket, err := js.KeyValue(t.Context(), "llm_breakers")
	require.NoError(t, err)
	watcher, err := bucket.Watch(t.Context(), primaryKey, jetstream.UpdatesOnly())
	require.NoError(t, err)
	states := make(chan string, 64)
	go func() {
		for update := range watcher.Updates() {
			var record struct {
				State string `json:"state"`
			}
			if update != nil && json.Unmarshal(update.Value(), &record) == nil {
				states <- record.State
			}
		}
	}()
	t.Cleanup(func() { _ = watcher.Stop() })
	return states
}

func TestProcessesAllSkipADeadPrimary(t *testing.T) {
	s := newSite(t)
	workers := s.start(t, 3)
	states := s.states(t)
	for range 2 { // the second time begins with the closed state that the first ended with
		s.fail(t, "hang")
		for n := 0; len(states) == 0; n++ { // five failures; a worker that has not yet heard of the last recovery adds none
			require.Less(t, n, 20, "calls until the breaker opens")
			_, err := ask(t.Context(), s.caller, hello)
			require.NoError(t, err)
		}
		require.Equal(t, "open", receive(t, states))
		until(t, "every worker has opened", func() bool {
			open := 0
			for _, one := range s.statuses(t) {
				for _, b := range one.Details.Breakers {
					if b.Key == primaryKey && b.State != "closed" {
						open++
					}
				}
			}
			return open == len(workers)
		})
		s.mend()
		// The bucket keeps one value of a key, so a watch may step over a state that lasts
		// a millisecond; real models take longer than that.
		s.fail(t, "slow-first-100ms")
		until(t, "a probe brings the primary back", func() bool {
			got, err := ask(t.Context(), s.caller, hello)
			return err == nil && got.Provider == "primary"
		})
		require.Equal(t, "half_open", receive(t, states))
		require.Equal(t, "closed", receive(t, states))
	}
}

func TestProcessKilledTakesNobodyWithIt(t *testing.T) {
	s := newSite(t)
	workers := s.start(t, 3)
	lost, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.caller.RequestWithContext(lost, subjects.Complete("silent"), []byte(hello))
		ended <- err
	}()
	until(t, "the call is under way", func() bool { return s.sim.Calls("sim-hang") == 1 })
	victim := s.busy(t, workers)
	_ = victim.stop(t, syscall.SIGKILL)
	for range 50 {
		got, err := ask(t.Context(), s.caller, hello)
		require.NoError(t, err)
		require.Nil(t, got.Error)
	}
	require.ErrorIs(t, receive(t, ended), context.DeadlineExceeded, "its own request has no end but the caller's deadline")
}

// busy is the worker that has a request in flight.
func (s *site) busy(t *testing.T, workers []*process) (found *process) {
	t.Helper()
	until(t, "a worker says that it is busy", func() bool {
		for _, one := range s.statuses(t) {
			for _, p := range workers {
				if one.of(p.name) && one.Stats.InFlight > 0 {
					found = p
				}
			}
		}
		return found != nil
	})
	return found
}

// stream subscribes to the stream of a new id and starts the request.
func (s *site) stream(t *testing.T, feature string) (*nats.Subscription, string) {
	t.Helper()
	id := nuid.Next() + nuid.Next()
	sub, err := s.caller.SubscribeSync(subjects.Stream("", id))
	require.NoError(t, err)
	msg := &nats.Msg{Subject: subjects.Complete(feature), Reply: s.caller.NewInbox(), Data: []byte(streamed),
		Header: nats.Header{subjects.HeaderRequestID: {id}}}
	require.NoError(t, s.caller.PublishMsg(msg))
	return sub, id
}

// next returns the next frame that is no ping.
func next(t *testing.T, sub *nats.Subscription) llm.Frame {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		msg, err := sub.NextMsgWithContext(ctx)
		cancel()
		require.NoError(t, err)
		f, err := llm.DecodeFrame(msg.Data)
		require.NoError(t, err)
		if f.Type != llm.FramePing {
			return f
		}
	}
}

const streamed = `{"prompt":"hello","stream":true}`

func TestProcessTerminatedFinishesItsStream(t *testing.T) {
	s := newSite(t)
	worker := s.start(t, 1)[0]
	sub, _ := s.stream(t, "slow")
	for next(t, sub).Type != llm.FrameDelta {
	}
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	last := next(t, sub)
	for !last.Terminal() {
		last = next(t, sub)
	}
	require.Equal(t, llm.FrameEnd, last.Type, "what is in flight may finish")
	require.NoError(t, receive(t, worker.gone), "exit code 0")
}

func TestProcessTerminatedEndsAStreamThatTakesTooLong(t *testing.T) {
	s := newSite(t)
	worker := s.start(t, 1, "LLMBUS_SHUTDOWN_GRACE=100ms")[0]
	sub, _ := s.stream(t, "slow")
	for next(t, sub).Type != llm.FrameDelta {
	}
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	last := next(t, sub)
	for !last.Terminal() {
		last = next(t, sub)
	}
	require.Equal(t, llm.FrameError, last.Type)
	require.Equal(t, llm.CodeInterrupted, last.Error.Code)
	require.NoError(t, receive(t, worker.gone), "exit code 0")
}

func TestRollingRestartLosesNoRequest(t *testing.T) {
	s := newSite(t)
	old := s.start(t, 3)
	l := startLoad(s.caller, 8)
	for _, p := range old {
		s.start(t, 1)
		require.NoError(t, p.stop(t, syscall.SIGTERM))
	}
	served := l.model.Load()
	until(t, "the new fleet serves", func() bool { return l.model.Load() > served+50 })
	l.end()
	require.Zero(t, l.failed.Load())
}

func TestCancelClosesTheProvidersSocket(t *testing.T) {
	for name, tc := range map[string]struct {
		feature, model string
		deltas         int
	}{
		"before the first token": {"silent", "sim-hang", 0},
		"in mid-stream":          {"slow", "sim-ok-t60-g20ms", 3},
	} {
		t.Run(name, func(t *testing.T) {
			const soon, tries = 500 * time.Millisecond, 5 // a busy machine may be late with one of them
			s := newSite(t)
			s.start(t, 1)
			took := s.cancel(t, tc.feature, tc.model, tc.deltas)
			for n := 1; n < tries && took >= soon; n++ {
				took = s.cancel(t, tc.feature, tc.model, tc.deltas)
			}
			require.Less(t, took, soon)
		})
	}
}

// cancel takes a stream back once it has had some deltas, and returns after what
// time the provider saw its socket closed.
func (s *site) cancel(t *testing.T, feature, model string, deltas int) time.Duration {
	t.Helper()
	calls, cancels := s.sim.Calls(model), len(s.sim.Stats().Cancels)
	sub, id := s.stream(t, feature)
	until(t, "the provider is called", func() bool { return s.sim.Calls(model) == calls+1 })
	for seen := 0; seen < deltas; {
		if next(t, sub).Type == llm.FrameDelta {
			seen++
		}
	}
	began := time.Now()
	require.NoError(t, s.caller.Publish(subjects.Cancel(id), nil))
	last := next(t, sub)
	for !last.Terminal() {
		last = next(t, sub)
	}
	require.Equal(t, llm.CodeCancelled, last.Error.Code)
	until(t, "the socket is closed", func() bool { return len(s.sim.Stats().Cancels) == cancels+1 })
	if deltas > 0 {
		require.True(t, last.Error.Attempts[0].Usage.Estimated, "the partial answer is booked")
	}
	require.EqualValues(t, cancels+1, s.sim.Stats().Cancelled[model])
	return s.sim.Stats().Cancels[cancels].At.Sub(began)
}
