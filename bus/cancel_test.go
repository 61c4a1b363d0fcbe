package bus_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

func TestCancelStopsTheModelAtOnce(t *testing.T) {
	for name, step := range map[string]fake.Step{
		"before the first token": fake.Hangs(),
		"in mid-stream":          {Pieces: []string{"a"}, Hang: true},
	} {
		for _, stream := range []string{"false", "true"} {
			t.Run(name+" "+stream, func(t *testing.T) {
				natstest.Bubble(t, func(t *testing.T) {
					p := fake.New(step)
					r := start(t, model{p})
					inbox, frames := r.listen(t, "_INBOX.x"), r.listen(t, subjects.Stream("", "1"))
					m := msg(`{"prompt":"hi","stream":`+stream+`}`, subjects.HeaderRequestID, "1")
					m.Reply = inbox.Subject
					r.publish(t, m)
					require.Equal(t, 1, p.Running())

					began := time.Now()
					require.NoError(t, r.caller.Publish(subjects.Cancel("other"), nil))
					require.NoError(t, r.caller.Publish(subjects.Cancel("1"), nil))
					synctest.Wait()
					require.Zero(t, p.Running())
					require.Zero(t, time.Since(began))
					require.ErrorIs(t, p.Calls()[0].Cause, llm.ErrCancelled)
					msgs := received(t, inbox)
					require.Len(t, msgs, 1)
					require.Equal(t, llm.CodeCancelled, refusal(t, msgs[0]).Code)
					if stream == "true" {
						list := types(t, received(t, frames))
						require.Equal(t, "error", list[len(list)-1])
					}
					require.EqualValues(t, 1, r.worker.Stats().Cancels)
				})
			})
		}
	}
}

func TestACancelThatOvertakesItsRequestCounts(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := start(t, model{p})
		require.NoError(t, r.caller.Publish(subjects.Cancel("1"), nil))
		synctest.Wait()
		require.Equal(t, llm.CodeCancelled, refusal(t, r.ask(t, msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, "1"))).Code)
	})
}

func TestAPingThatNobodyHearsCancels(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := start(t, model{p})
		frames, inbox := r.listen(t, subjects.Stream("", "1")), r.listen(t, "_INBOX.x")
		r.publish(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1"))
		m := msg(`{"prompt":"hi","stream":true}`)
		m.Reply = inbox.Subject
		r.publish(t, m)
		<-time.After(15 * time.Second)
		require.Equal(t, 2, p.Running(), "they listen")

		require.NoError(t, frames.Unsubscribe())
		require.NoError(t, inbox.Unsubscribe())
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Zero(t, p.Running())
		require.EqualValues(t, 2, r.worker.Stats().CallerGone)
	})
}

func TestNobodyAtAllCancelsAtTheFirstFrame(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := start(t, model{p})
		r.publish(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1"))
		require.Zero(t, p.Running())
		require.EqualValues(t, 1, r.worker.Stats().CallerGone)
	})
}

func TestACallerThatReadsTheReplyOnlyIsThere(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Wait: 35 * time.Second, Pieces: []string{"a"}})})
		resp, err := llm.DecodeReply(r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1")).Data)
		require.NoError(t, err)
		require.Equal(t, "a", resp.Content)
	})
}

func TestAnIDIsActiveOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Step{Wait: time.Second, Pieces: []string{"a"}})
		r := start(t, model{p})
		first, second := r.listen(t, "_INBOX.1"), r.listen(t, "_INBOX.2")
		frames := r.listen(t, subjects.Stream("", "1"))
		m := msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1")
		m.Reply = first.Subject
		r.publish(t, m)
		m.Reply = second.Subject
		r.publish(t, m)
		m.Reply = "" // nowhere to complain to: the stream is the first one's
		r.publish(t, m)
		msgs := received(t, second)
		require.Len(t, msgs, 1)
		require.Contains(t, refusal(t, msgs[0]).Message, "a request with this id is under way")

		<-time.After(2 * time.Second)
		require.Equal(t, []string{"start", "delta", "end"}, types(t, received(t, frames)))
		require.Len(t, received(t, first), 1)
		require.Equal(t, 1, p.Count())
		r.ask(t, msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, "1")) // it is free again
	})
}

func TestAThousandCancelsLeaveNothingBehind(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Step{Pieces: []string{"a"}, Hang: true})
		r := start(t, model{p}, func(c *bus.Config) { c.Slots = 1000 })
		inbox := r.listen(t, "_INBOX.x")
		synctest.Wait()
		before := goroutines()
		for i := range 1000 {
			m := msg(fmt.Sprintf(`{"prompt":"hi","stream":%t}`, i%2 == 0), subjects.HeaderRequestID, fmt.Sprint(i))
			m.Reply = inbox.Subject
			require.NoError(t, r.caller.PublishMsg(m))
		}
		synctest.Wait()
		require.Equal(t, 1000, p.Running())
		for i := range 1000 {
			require.NoError(t, r.caller.Publish(subjects.Cancel(fmt.Sprint(i)), nil))
		}
		synctest.Wait()
		require.Zero(t, p.Running())
		require.Len(t, received(t, inbox), 1000)
		<-time.After(time.Minute)
		synctest.Wait()
		require.LessOrEqual(t, goroutines(), before+128+3, "some stay for the next request, and the server may have started some of its own")
		require.Zero(t, r.worker.Stats().InFlight)
		require.EqualValues(t, 1000, r.worker.Stats().Errors[llm.CodeCancelled])
	})
}

// goroutines counts those that exist. runtime.NumGoroutine is off by dozens at
// times, since it reads the lists of free ones while they move.
func goroutines() int {
	buf := make([]byte, 4<<20)
	return bytes.Count(buf[:runtime.Stack(buf, true)], []byte("\ngoroutine ")) + 1
}
