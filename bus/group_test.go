package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

func slotsOf(n int) func(*bus.Config) { return func(c *bus.Config) { c.Slots = n } }

// occupy sends n requests that last until their step ends.
func (r *rig) occupy(t *testing.T, n int) {
	t.Helper()
	for range n {
		m := msg(`{"prompt":"hi"}`)
		m.Reply = "_INBOX.occupied"
		require.NoError(t, r.caller.PublishMsg(m))
	}
	synctest.Wait()
}

func TestFullMeansBusyAtOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := fake.New(fake.Step{Until: gate, Pieces: []string{"a"}})
		r := start(t, model{p}, slotsOf(4), func(c *bus.Config) { c.BusyAfter = 1500 * time.Millisecond })
		r.occupy(t, 4)
		began := time.Now()
		reply := r.ask(t, msg(`{"prompt":"hi"}`))
		e := refusal(t, reply)
		require.Equal(t, llm.CodeBusy, e.Code)
		require.EqualValues(t, 1500, e.RetryAfterMS)
		require.Equal(t, "2", reply.Header.Get(subjects.HeaderRetryAfter), "seconds, rounded up")
		require.Equal(t, "429", reply.Header.Get(subjects.HeaderErrorCode))
		require.Zero(t, time.Since(began))

		inbox := r.listen(t, "_INBOX.x")
		m := msg(`{"prompt":"hi","stream":true}`)
		m.Reply = inbox.Subject
		r.publish(t, m)
		require.Equal(t, []string{"error", "-"}, types(t, received(t, inbox)))
		require.EqualValues(t, 2, r.worker.Stats().Busy)
		require.Equal(t, 4, p.Count())
		close(gate)
	})
}

func TestFullForLongLeavesTheGroupAndComesBack(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := start(t, model{fake.New(fake.Step{Until: gate, Pieces: []string{"a"}})}, slotsOf(4))
		r.occupy(t, 4)
		<-time.After(900 * time.Millisecond)
		require.Equal(t, llm.CodeBusy, refusal(t, r.ask(t, msg(`{"prompt":"hi"}`))).Code)
		<-time.After(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, bus.Away, r.worker.State())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := r.caller.RequestMsgWithContext(ctx, msg(`{"prompt":"hi"}`))
		require.ErrorIs(t, err, nats.ErrNoResponders, "the last worker is out")

		close(gate)
		<-time.After(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, bus.Away, r.worker.State(), "not yet calm for long enough")
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, bus.Joined, r.worker.State())
		_, err = llm.DecodeReply(r.ask(t, msg(`{"prompt":"hi"}`)).Data)
		require.NoError(t, err)
		stats := r.worker.Stats()
		require.EqualValues(t, 1, stats.Left)
		require.EqualValues(t, 1, stats.Rejoined)
	})
}

func TestOthersTakeOverFromAFullWorker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Hangs())}, slotsOf(1), func(c *bus.Config) { c.Grace = time.Second })
		r.occupy(t, 1)
		<-time.After(1100 * time.Millisecond)
		free := fake.New()
		_, stop := startWorker(t, natstest.Connect(t, r.srv), model{free})
		for range 20 {
			_, err := llm.DecodeReply(r.ask(t, msg(`{"prompt":"hi"}`)).Data)
			require.NoError(t, err)
		}
		require.Equal(t, 20, free.Count())
		require.NoError(t, stop())
	})
}

// TestRollingRestartLosesNothing replaces a worker by another while many callers
// ask; every one of them must get an answer.
func TestRollingRestartLosesNothing(t *testing.T) {
	srv := natstest.ListenServer(t)
	completer := model{fake.New(fake.Step{Wait: time.Millisecond, Pieces: []string{"ok"}})}
	_, stop := startWorker(t, srv.Dial(), completer)
	var answered atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	quit := make(chan struct{})
	var callers sync.WaitGroup
	failures := make(chan error, 16)
	for range 8 {
		nc := srv.Dial()
		callers.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				reply, err := nc.RequestMsgWithContext(ctx, msg(`{"prompt":"hi"}`))
				if errors.Is(err, nats.ErrNoResponders) {
					continue // nobody got it: the server routed by a list from before the new worker joined
				}
				if err == nil {
					_, err = llm.DecodeReply(reply.Data)
				}
				if err != nil {
					failures <- err
					return
				}
				answered.Add(1)
			}
		})
	}
	for range 10 {
		seen := answered.Load()
		require.Eventually(t, func() bool { return answered.Load() > seen+50 }, 10*time.Second, time.Millisecond)
		_, next := startWorker(t, srv.Dial(), completer)
		require.NoError(t, stop())
		stop = next
	}
	close(quit)
	callers.Wait()
	require.Empty(t, failures)
	require.NoError(t, stop())
}

func TestShutdownLetsWhatRunsFinish(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Wait: 10 * time.Second, Pieces: []string{"a"}})})
		inbox := r.listen(t, "_INBOX.x")
		for i := range 50 {
			m := msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, fmt.Sprint(i))
			m.Reply = inbox.Subject
			require.NoError(t, r.caller.PublishMsg(m))
		}
		flush(t, r.caller)
		require.NoError(t, r.stop())
		synctest.Wait()
		msgs := received(t, inbox)
		require.Len(t, msgs, 50)
		for _, m := range msgs {
			_, err := llm.DecodeReply(m.Data)
			require.NoError(t, err)
		}
		require.Equal(t, bus.Stopped, r.worker.State())
	})
}

func TestShutdownInterruptsWhatRunsTooLong(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Hangs())}, func(c *bus.Config) { c.Grace = 3 * time.Second })
		frames := r.listen(t, subjects.Stream("", "1"))
		r.publish(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1"))
		began := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 3*time.Second, time.Since(began).Truncate(time.Second))
		synctest.Wait()
		msgs := received(t, frames)
		last, err := llm.DecodeFrame(msgs[len(msgs)-1].Data)
		require.NoError(t, err)
		require.Equal(t, llm.CodeInterrupted, last.Error.Code)
	})
}

func TestShutdownDoesNotWaitForTheDeaf(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		deaf := awkward{func(context.Context) (*llm.Response, error) {
			<-time.After(time.Hour)
			return nil, errors.New("late")
		}}
		r := start(t, deaf, func(c *bus.Config) { c.Grace = time.Second })
		inbox := r.listen(t, "_INBOX.x")
		m := msg(`{"prompt":"hi"}`)
		m.Reply = inbox.Subject
		r.publish(t, m)
		require.ErrorIs(t, r.stop(), bus.ErrStuck)
		synctest.Wait()
		msgs := received(t, inbox)
		require.Len(t, msgs, 1)
		require.Equal(t, llm.CodeInterrupted, refusal(t, msgs[0]).Code)
		<-time.After(time.Hour)
	})
}

func TestShutdownAfterTheConnectionIsGone(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		nc := natstest.Connect(t, srv)
		_, stop := startWorker(t, nc, model{fake.New()})
		nc.Close()
		began := time.Now()
		require.ErrorIs(t, stop(), nats.ErrConnectionClosed)
		require.Less(t, time.Since(began), time.Second)
	})
}
