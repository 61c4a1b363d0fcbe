package bus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// TestHostileReplySubjectsGetNothing aims answers at what they could do harm to.
func TestHostileReplySubjectsGetNothing(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New()
		r := start(t, model{p})
		all := r.listen(t, ">")
		for _, reply := range []string{
			"$KV.llm_flags.all", "$JS.API.STREAM.DELETE.KV_llm_flags", "$SYS.REQ.SERVER.PING", "$SRV.PING", "llm.complete.f", "llm.cancel.x",
			"llm.stream.x", "llm.failures.a.m", "llm", "_INBOX.>", "_INBOX.*", "_inbox.x", "INBOX.x", "x._INBOX.y", "foo",
		} {
			for _, payload := range []string{`{"prompt":"hi"}`, `{"prompt":"hi","stream":true}`, `{"prompt":"hi","stream":true,"stream_to":"reply"}`, `broken`} {
				m := msg(payload, subjects.HeaderRequestID, "id")
				m.Reply = reply
				r.publish(t, m)
				got := received(t, all)
				require.Len(t, got, 1, "only the request itself: %s", reply)
				require.Equal(t, m.Subject, got[0].Subject)
			}
		}
		require.Zero(t, p.Count())
	})
}

func TestALongInboxIsAnswered(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New()})
		long := "_INBOX." + strings.Repeat("x", 2000)
		sub := r.listen(t, long)
		m := msg(`{"prompt":"hi"}`)
		m.Reply = long
		r.publish(t, m)
		require.Len(t, received(t, sub), 1)
	})
}

// TestHostileIDsNameOneStream sends ids that could be taken for several tokens
// or for wildcards.
func TestHostileIDsNameOneStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New(fake.Answer("x"))})
		all := r.listen(t, "llm.stream.>")
		for _, id := range []string{"a.b", "*", ">", "a.*", "$SYS", "=2A", "..", "{}\"'", strings.Repeat("i", subjects.MaxRequestID)} {
			reply := r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, id))
			require.Equal(t, id, reply.Header.Get(subjects.HeaderRequestID))
			frames := received(t, all)
			require.Equal(t, []string{"start", "delta", "end"}, types(t, frames), id)
			for _, f := range frames {
				require.Equal(t, subjects.Stream("", id), f.Subject)
				require.Equal(t, 2, strings.Count(f.Subject, "."))
			}
		}
		refused := r.ask(t, msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, strings.Repeat("i", subjects.MaxRequestID+1)))
		require.Equal(t, llm.CodeInvalidRequest, refusal(t, refused).Code)
	})
}

// TestValuesFromOutsideMakeNoHeaders has line ends in what gets into headers.
func TestValuesFromOutsideMakeNoHeaders(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		const evil = "x\r\nLlm-Served-By: evil\r\n\r\nbody"
		answer := &llm.Response{Content: "ok", Provider: evil, Model: evil, ServedBy: "model"}
		r := start(t, scripted{func() (*llm.Response, error) { return answer, nil }})
		reply := r.ask(t, msg(`{"prompt":"hi"}`))
		require.Equal(t, []string{"model"}, reply.Header.Values(subjects.HeaderServedBy))
		require.True(t, json.Valid(reply.Data))

		r = start(t, scripted{func() (*llm.Response, error) { return nil, llm.Errorf(llm.CodePolicyDenied, "%s", evil) }})
		reply = r.ask(t, msg(`{"prompt":"hi"}`))
		require.Empty(t, reply.Header.Get(subjects.HeaderServedBy))
		require.Equal(t, []string{"403"}, reply.Header.Values(subjects.HeaderErrorCode))
		require.True(t, json.Valid(reply.Data))
	})
}

// scripted is a Completer that need not keep its promises.
type scripted struct {
	answer func() (*llm.Response, error)
}

func (s scripted) Complete(context.Context, *llm.Request) (*llm.Response, error) { return s.answer() }

func (s scripted) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) { yield(llm.Frame{Type: llm.FrameError}, nil) }
}

func TestAnErrorFrameWithoutAnErrorEndsTheRequestOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, scripted{})
		frames := r.listen(t, subjects.Stream("", "id"))
		reply := r.ask(t, msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "id"))
		require.Equal(t, llm.CodeInternal, refusal(t, reply).Code)
		require.Equal(t, []string{"error"}, types(t, received(t, frames)))
	})
}

func TestExtremeTimeouts(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := start(t, model{p})
		for header, want := range map[string]time.Duration{
			"1": time.Millisecond, "0": 0, "-1": 0, "-9223372036854775808": 0, "-9223372036855": 0, "9223372036854775807": 10 * time.Minute,
		} {
			began := time.Now()
			reply := r.ask(t, msg(`{"prompt":"hi"}`, subjects.HeaderTimeoutMS, header))
			require.Equal(t, llm.CodeDeadline, refusal(t, reply).Code, header)
			require.Equal(t, want, time.Since(began), header)
		}
		require.Equal(t, 2, p.Count(), "what was late on arrival is not begun")
	})
}

// TestFullSizedPayloads sends as much as a message may hold.
func TestFullSizedPayloads(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New()})
		limit := int(r.caller.MaxPayload())
		fill := func(head, tail string) []byte {
			return []byte(head + strings.Repeat("x", limit-len(head)-len(tail)) + tail)
		}
		for name, payload := range map[string][]byte{
			"prompt":    fill(`{"prompt":"`, `"}`),
			"unknown":   fill(`{"prompt":"hi","y":"`, `"}`),
			"deep":      bytes.Repeat([]byte("["), limit),
			"keys":      []byte(`{"prompt":"hi"` + manyKeys(limit-100) + `}`),
			"not JSON":  bytes.Repeat([]byte("\x00"), limit),
			"one quote": bytes.Repeat([]byte(`"`), limit),
		} {
			m := &nats.Msg{Subject: subjects.Complete("f"), Data: payload}
			reply := r.ask(t, m)
			require.NotEmpty(t, reply.Data, name)
			require.Less(t, len(reply.Data), 4096, "%s: %.200s", name, reply.Data)
		}
		echoed := &nats.Msg{Subject: subjects.Complete("f"), Data: fill(`{"prompt":"hi","metadata":"`, `"}`)}
		require.Equal(t, llm.CodeTooLarge, refusal(t, r.ask(t, echoed)).Code)
	})
}

func manyKeys(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size-20; i++ {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return b.String()
}

// TestAFloodLeavesNothingBehind sends what is keyed by values that callers
// choose.
func TestAFloodLeavesNothingBehind(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		r := start(t, model{fake.New()}, logTo(&log))
		lines := bytes.Count(log.Bytes(), []byte("\n"))
		for i := range 2_000 {
			id := fmt.Sprint("id-", i)
			require.NoError(t, r.caller.Publish(subjects.Cancel(id), nil))
			bad := msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, id)
			bad.Reply = "$KV.x." + id
			require.NoError(t, r.caller.PublishMsg(bad))
			require.NoError(t, r.caller.PublishMsg(msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, id)))
		}
		flush(t, r.caller)
		natstest.Advance(time.Second)
		synctest.Wait()
		require.LessOrEqual(t, bytes.Count(log.Bytes(), []byte("\n"))-lines, 2, "%s", log.String())
		require.Zero(t, r.worker.Stats().InFlight)
		require.LessOrEqual(t, len(r.worker.Stats().Errors), 2)
	})
}
