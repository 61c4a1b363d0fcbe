package bus_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/replay"
	"github.com/llmbus/llmbus/subjects"
)

const resumable = `{"prompt":"hi","stream":true,"resumable":true}`

// keeps opens the store of frames on the worker's connection.
func keeps(t testing.TB, o replay.Options) func(*bus.Config) {
	return func(c *bus.Config) {
		js, err := jetstream.New(c.Conn)
		require.NoError(t, err)
		store, err := replay.Open(t.Context(), js, o)
		require.NoError(t, err)
		c.Replay = store
	}
}

// come asks for the frames of a request from one on, as a reader who comes back.
func (r *rig) come(t testing.TB, id string, from int) *nats.Subscription {
	t.Helper()
	inbox := r.caller.NewInbox()
	sub := r.listen(t, inbox)
	m := &nats.Msg{Subject: subjects.Resume(id), Reply: inbox, Header: nats.Header{subjects.HeaderFromSeq: {fmt.Sprint(from)}}}
	require.NoError(t, r.caller.PublishMsg(m))
	return sub
}

// numbers are the seq of the frames among msgs; an empty message is 0.
func numbers(t testing.TB, msgs []*nats.Msg) (list []int) {
	t.Helper()
	for _, m := range msgs {
		if len(m.Data) == 0 {
			list = append(list, 0)
			continue
		}
		f, err := llm.DecodeFrame(m.Data)
		require.NoError(t, err, "%s", m.Data)
		list = append(list, int(f.Seq))
	}
	return list
}

func TestReadersComeBack(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Pieces: []string{"a", "b", "c", "d"}, Gap: time.Second})}, keeps(t, replay.Options{}))
		live := r.listen(t, subjects.Stream("", "1"))
		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		natstest.Advance(1500 * time.Millisecond)
		whole, rest := r.come(t, "1", 1), r.come(t, "1", 4)
		natstest.Advance(10 * time.Second)
		late, none := r.come(t, "1", 6), r.come(t, "1", 8)
		natstest.Advance(time.Second)

		require.Equal(t, []string{"ping", "start", "delta", "delta", "delta", "delta", "end"}, types(t, received(t, live)))
		require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 0}, numbers(t, received(t, whole)))
		require.Equal(t, []int{4, 5, 6, 7, 0}, numbers(t, received(t, rest)))
		require.Equal(t, []int{6, 7, 0}, numbers(t, received(t, late)))
		require.Empty(t, received(t, none), "frame 8 may be to come as far as anybody knows")
		require.EqualValues(t, 4, r.worker.Stats().Resumed)
	})
}

func TestReadersOfNothingAreTold(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Pieces: []string{"a", "b"}, Gap: 40 * time.Second})}, keeps(t, replay.Options{MaxAge: time.Minute}))
		told := func(id string, from int) *llm.Error {
			t.Helper()
			sub := r.come(t, id, from)
			natstest.Advance(5 * time.Second)
			msgs := received(t, sub)
			require.Len(t, msgs, 2)
			require.Empty(t, msgs[1].Data)
			return refusal(t, msgs[0])
		}
		require.Equal(t, llm.CodeUnknownRequest, told("nobody", 1).Code)
		require.Equal(t, llm.CodeInvalidRequest, told("1", 0).Code)

		r.publish(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "plain", subjects.HeaderTimeoutMS, "50000"))
		require.Equal(t, llm.CodeUnknownRequest, told("plain", 1).Code)

		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		natstest.Advance(70 * time.Second)
		expired := told("1", 1)
		require.Equal(t, llm.CodeUnknownRequest, expired.Code)
		require.Regexp(t, `frame 1 is not kept any more, the oldest is \d`, expired.Message)
		natstest.Advance(10 * time.Minute)
		require.Equal(t, llm.CodeUnknownRequest, told("1", 1).Code)
	})
}

func TestAResumableAnswerNeedsNoReader(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) { // no ping is due at the moment of the answer
		r := start(t, model{fake.New(fake.Step{Wait: time.Minute + time.Millisecond, Pieces: []string{"a"}})}, keeps(t, replay.Options{}))
		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		natstest.Advance(2 * time.Minute)
		sub := r.come(t, "1", 1)
		natstest.Advance(time.Second)
		list := types(t, received(t, sub))
		require.Equal(t, []string{"delta", "end", "-"}, list[len(list)-3:])
		require.Zero(t, r.worker.Stats().CallerGone)
	})
}

func TestAReaderThatIsGoneIsLeft(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Wait: time.Minute})}, keeps(t, replay.Options{}))
		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		sub := r.come(t, "1", 1)
		synctest.Wait()
		require.EqualValues(t, 1, r.worker.Stats().Readers)
		require.NoError(t, sub.Unsubscribe())
		natstest.Advance(15 * time.Second)
		require.Zero(t, r.worker.Stats().Readers)
		require.Equal(t, 1, r.worker.Stats().InFlight, "the answer goes on")
	})
}

func TestAnIDWithAnAnswerIsNotUsedAgain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.FailsWith(llm.OutcomeConnect), fake.Answer("a"))}, keeps(t, replay.Options{}))
		ask := func() *nats.Msg { return r.ask(t, msg(resumable, subjects.HeaderRequestID, "1")) }
		require.Equal(t, llm.CodeUnavailable, refusal(t, ask()).Code)
		resp, err := llm.DecodeReply(ask().Data)
		require.NoError(t, err, "nothing was shown, so it may be begun anew")
		require.Equal(t, "a", resp.Content)
		synctest.Wait() // JetStream keeps frames a moment after they were sent
		require.Equal(t, llm.CodeInvalidRequest, refusal(t, ask()).Code)

		sub := r.come(t, "1", 1)
		synctest.Wait()
		require.Equal(t, []string{"ping", "start", "delta", "end", "-"}, types(t, received(t, sub)), "the second try alone")
	})
}

func TestWithoutAStoreAStreamIsAnOrdinaryOne(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Answer("a"))})
		sub := r.listen(t, subjects.Stream("", "1"))
		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		require.Equal(t, []string{"start", "delta", "end"}, types(t, received(t, sub)))
		_, err := r.caller.RequestWithContext(t.Context(), subjects.Resume("1"), nil)
		require.ErrorIs(t, err, nats.ErrNoResponders)
	})
}

func TestOrdinaryStreamsAreNotKept(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Answer("a"))}, keeps(t, replay.Options{}))
		r.publish(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1"))
		js, err := jetstream.New(r.caller)
		require.NoError(t, err)
		stream, err := js.Stream(t.Context(), replay.StreamName)
		require.NoError(t, err)
		require.Zero(t, stream.CachedInfo().State.Msgs)
	})
}

func TestTooManyReadersAreSentAway(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Hangs())}, keeps(t, replay.Options{}), func(c *bus.Config) { c.Readers = 1 })
		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		r.come(t, "1", 1)
		synctest.Wait()
		sub := r.come(t, "1", 1)
		synctest.Wait()
		require.Equal(t, llm.CodeBusy, refusal(t, received(t, sub)[0]).Code)
		r.publish(t, &nats.Msg{Subject: subjects.Cancel("1")})
	})
}

func TestPingsOfAWholeAnswer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Wait: 3500 * time.Millisecond, Pieces: []string{"a"}}, fake.Hangs())})
		sub := r.listen(t, subjects.Stream("", "1"))
		whole := msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, "1", subjects.HeaderPingMS, "1000")
		_, err := llm.DecodeReply(r.ask(t, whole).Data)
		require.NoError(t, err)
		natstest.Advance(time.Minute)
		require.Equal(t, []string{"ping", "ping", "ping", "ping"}, types(t, received(t, sub)))

		time.AfterFunc(500*time.Millisecond, func() { _ = sub.Unsubscribe() })
		require.Equal(t, llm.CodeCancelled, refusal(t, r.ask(t, whole)).Code, "the caller went away")
		for _, bad := range []string{"soon", "0"} {
			require.Equal(t, llm.CodeInvalidRequest, refusal(t, r.ask(t, msg(`{"prompt":"hi"}`, subjects.HeaderPingMS, bad))).Code)
		}
	})
}

func TestARelayEndsWithItsWorker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Hangs())}, keeps(t, replay.Options{}), func(c *bus.Config) { c.Grace = time.Second })
		r.publish(t, msg(resumable, subjects.HeaderRequestID, "1"))
		sub := r.come(t, "1", 1)
		synctest.Wait()
		require.NoError(t, r.stop())
		synctest.Wait()
		list := types(t, received(t, sub))
		require.Equal(t, "-", list[len(list)-1])
		_, err := r.caller.RequestWithContext(context.Background(), subjects.Resume("1"), nil)
		require.ErrorIs(t, err, nats.ErrNoResponders)
	})
}
