package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

func TestStreamToASubjectAlsoReplies(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Reasoning: "hm", Pieces: []string{"he", "llo"}})})
		frames := r.listen(t, subjects.Stream("", "1"))
		resp, err := llm.DecodeReply(r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1")).Data)
		require.NoError(t, err)
		require.Equal(t, "hello", resp.Content)

		msgs := received(t, frames)
		require.Equal(t, []string{"start", "delta", "delta", "end"}, types(t, msgs))
		require.Equal(t, "1", msgs[0].Header.Get(subjects.HeaderRequestID))
		require.Equal(t, "model", msgs[3].Header.Get(subjects.HeaderServedBy))
		end, err := llm.DecodeFrame(msgs[3].Data)
		require.NoError(t, err)
		require.Empty(t, end.Response.Content)
	})
}

func TestStreamToTheReplySubjectEndsEmpty(t *testing.T) {
	for name, tc := range map[string]struct {
		payload string
		headers []string
	}{
		"no id":   {`{"prompt":"hi","stream":true}`, nil},
		"by wish": {`{"prompt":"hi","stream":true,"stream_to":"reply"}`, []string{subjects.HeaderRequestID, "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := start(t, model{fake.New(fake.Answer("a", "b"))})
				inbox := r.listen(t, "_INBOX.x")
				m := msg(tc.payload, tc.headers...)
				m.Reply = inbox.Subject
				r.publish(t, m)
				msgs := received(t, inbox)
				require.Equal(t, []string{"start", "delta", "delta", "end", "-"}, types(t, msgs))
				require.NotEmpty(t, msgs[0].Header.Get(subjects.HeaderRequestID), "the caller can cancel")
			})
		})
	}
}

func TestFailedStreamsEndWithAnErrorOnBothSides(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Step{Pieces: []string{"a"}, Err: provider.Fail(llm.OutcomeUnavailable, nil)}, fake.Step{Pieces: []string{"a"}, Truncate: true})
		r := start(t, model{p})
		for _, want := range []llm.Code{llm.CodeUnavailable, llm.CodeInternal} {
			frames := r.listen(t, subjects.Stream("", string(want)))
			reply := r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, string(want)))
			require.Equal(t, want, refusal(t, reply).Code)
			msgs := received(t, frames)
			require.Equal(t, []string{"start", "delta", "error"}, types(t, msgs))
			require.NotEmpty(t, msgs[2].Header.Get(subjects.HeaderErrorCode))
		}
	})
}

func TestRefusedStreamsTakeTheFormTheirReaderExpects(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New()})
		inbox, frames := r.listen(t, "_INBOX.x"), r.listen(t, subjects.Stream("", "1"))

		m := msg(`{"prompt":7,"stream":true}`)
		m.Reply = inbox.Subject
		r.publish(t, m)
		require.Equal(t, []string{"error", "-"}, types(t, received(t, inbox)))

		m.Header.Set(subjects.HeaderRequestID, "1")
		r.publish(t, m)
		msgs := received(t, inbox)
		require.Len(t, msgs, 1)
		require.Equal(t, llm.CodeInvalidRequest, refusal(t, msgs[0]).Code)
		require.Empty(t, received(t, frames), "it was never admitted")

		m.Reply = ""
		r.publish(t, m)
		require.Equal(t, []string{"error"}, types(t, received(t, frames)))
	})
}

func TestStreamWithoutAReplySubject(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Answer("a"))})
		frames := r.listen(t, subjects.Stream("", "1"))
		r.publish(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1"))
		require.Equal(t, []string{"start", "delta", "end"}, types(t, received(t, frames)))
	})
}

func TestWhatNobodyCouldReceiveIsNotDone(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New()
		r := start(t, model{p})
		r.publish(t, msg(`{"prompt":"hi"}`))
		r.publish(t, msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, "1"))
		r.publish(t, msg(`{"prompt":"hi","stream":true}`))
		r.publish(t, msg(`{"prompt":7}`))
		require.EqualValues(t, 4, r.worker.Stats().Unanswerable)

		aimed := r.listen(t, "$KV.llm_flags.all")
		other := r.listen(t, "llm.complete.other")
		for i, target := range []string{aimed.Subject, other.Subject, "somewhere", aimed.Subject} {
			m := msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "2")
			if i == 3 {
				m.Data = []byte(`{`)
			}
			m.Reply = target
			r.publish(t, m)
		}
		require.EqualValues(t, 4, r.worker.Stats().BadReply)
		require.Empty(t, received(t, aimed))
		require.Empty(t, received(t, other))
		require.Zero(t, p.Count())
	})
}

func TestPingsWhileTheModelIsSilent(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Step{Wait: 25 * time.Second, Pieces: []string{"a"}})})
		frames := r.listen(t, subjects.Stream("", "1"))
		r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1"))
		require.Equal(t, []string{"start", "ping", "ping", "delta", "end"}, types(t, received(t, frames)))
	})
}

func TestASlowReaderHoldsUpNobody(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		pieces := make([]string, 2000)
		for i := range pieces {
			pieces[i] = "x"
		}
		r := start(t, model{fake.New(fake.Answer(pieces...))}, func(c *bus.Config) { c.Slots = 2 })
		r.caller.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
		slow := r.listen(t, subjects.Stream("", "slow"))
		require.NoError(t, slow.SetPendingLimits(10, -1))
		r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "slow"))
		for _, err := range stream.Read(t.Context(), slow.NextMsgWithContext, time.Minute) {
			if err != nil {
				require.IsType(t, &stream.GapError{}, err)
			}
		}
		require.EqualValues(t, 1, r.worker.Stats().Succeeded)
	})
}
