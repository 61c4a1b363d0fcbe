package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

const subject = "llm.stream.test"

// wire is a writer and a reader on two connections to one server.
type wire struct {
	srv            *server.Server
	worker, caller *nats.Conn
	sub            *nats.Subscription
}

func connect(t testing.TB) wire {
	t.Helper()
	srv := natstest.Server(t)
	w := wire{srv: srv, worker: natstest.Connect(t, srv), caller: natstest.Connect(t, srv)}
	var err error
	w.sub, err = w.caller.SubscribeSync(subject)
	require.NoError(t, err)
	flush(t, w.caller)
	return w
}

// flush waits until the server has handled what nc sent.
func flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, nc.FlushWithContext(ctx))
}

// read collects a whole stream, pings left out.
func (w wire) read(t *testing.T) (frames []llm.Frame, err error) {
	t.Helper()
	for frame, e := range stream.Read(t.Context(), w.sub.NextMsgWithContext, time.Minute) {
		if e != nil {
			return frames, e
		}
		if frame.Type != llm.FramePing {
			frames = append(frames, frame)
		}
	}
	return frames, nil
}

func delta(text string) llm.Frame { return llm.Frame{Attempt: 1, Type: llm.FrameDelta, Text: text} }

func end(content string, calls ...llm.ToolCall) llm.Frame {
	return llm.Frame{Attempt: 1, Type: llm.FrameEnd, Response: &llm.Response{Content: content, ToolCalls: calls, ServedBy: llm.ServedByModel}}
}

func TestFramesArriveInOrderAndTheEndHoldsTheRest(t *testing.T) {
	weather := llm.ToolCall{ID: "1", Name: "f", Arguments: `{"a":1}`}
	for name, tc := range map[string]struct {
		write     []llm.Frame
		types     string
		text      string
		remainder string // what the end frame still says
	}{
		"all sent":         {[]llm.Frame{delta("a"), delta("b"), end("ab")}, "delta delta end", "ab", ""},
		"nothing sent":     {[]llm.Frame{end("static")}, "delta end", "static", ""},
		"tail not sent":    {[]llm.Frame{delta("a"), end("abc")}, "delta delta end", "abc", ""},
		"other text":       {[]llm.Frame{delta("```x"), end("x")}, "delta end", "```x", "x"},
		"calls not sent":   {[]llm.Frame{end("", weather)}, "tool_call end", "", ""},
		"reasoning, pings": {[]llm.Frame{{Type: llm.FrameReasoning, Text: "hm"}, {Type: llm.FramePing}, delta(""), delta("a"), end("a")}, "delta end", "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := connect(t)
			out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
			for _, f := range tc.write {
				require.NoError(t, out.Write(f))
			}
			frames, err := w.read(t)
			require.NoError(t, err)
			var types []string
			var whole stream.Assembly
			for i, f := range frames {
				require.EqualValues(t, i+1, f.Seq)
				types = append(types, string(f.Type))
				whole.Add(&f)
			}
			require.Equal(t, tc.types, strings.Join(types, " "))
			require.Equal(t, tc.text, whole.Text())
			last := frames[len(frames)-1].Response
			require.Equal(t, tc.remainder, last.Content)
			require.Empty(t, last.ToolCalls)
			whole.Complete(last)
			require.Equal(t, tc.write[len(tc.write)-1].Response, last)
		})
	}
}

func TestHigherAttemptReplacesWhatCameBefore(t *testing.T) {
	w := connect(t)
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	for _, f := range []llm.Frame{
		delta("old"),
		{Attempt: 2, Type: llm.FrameStart, Provider: "p", Model: "m"},
		{Attempt: 2, Type: llm.FrameDelta, Text: "new"},
		{Attempt: 2, Type: llm.FrameEnd, Response: &llm.Response{Content: "new"}},
	} {
		require.NoError(t, out.Write(f))
	}
	frames, err := w.read(t)
	require.NoError(t, err)
	require.Len(t, frames, 4)
	var whole stream.Assembly
	for _, f := range frames {
		whole.Add(&f)
	}
	require.Equal(t, "new", whole.Text())
	require.Empty(t, frames[3].Response.Content)
}

func TestNothingFollowsTheLastFrame(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		w := connect(t)
		out := stream.NewWriter(w.worker, stream.Target{Subject: subject, PingEvery: time.Second})
		require.NoError(t, out.Write(llm.Frame{Type: llm.FrameError, Error: llm.ErrBusy}))
		require.ErrorIs(t, out.Write(delta("late")), stream.ErrEnded)
		require.ErrorIs(t, out.Write(end("late")), stream.ErrEnded)
		frames, err := w.read(t)
		require.ErrorIs(t, err, llm.ErrBusy)
		require.Empty(t, frames)
		<-time.After(time.Minute) // the bubble's time: pings would come
		synctest.Wait()
		pending, _, err := w.sub.Pending()
		require.NoError(t, err)
		require.Zero(t, pending)
	})
}

func TestInboxStreamIsClosedByOneEmptyMessage(t *testing.T) {
	w := connect(t)
	header := func(f *llm.Frame) nats.Header { return nats.Header{"X": {string(f.Type)}} }
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject, Inbox: true, Header: header})
	for _, f := range []llm.Frame{delta("a"), delta("b"), end("ab")} {
		require.NoError(t, out.Write(f))
	}
	for _, want := range []struct {
		header string
		empty  bool
	}{{header: "delta"}, {}, {header: "end"}, {empty: true}} {
		msg, err := w.sub.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, want.header, msg.Header.Get("X"))
		require.Equal(t, want.empty, len(msg.Data) == 0)
	}
	flush(t, w.worker)
	pending, _, err := w.sub.Pending()
	require.NoError(t, err)
	require.Zero(t, pending)
}

func TestPingsFillSilenceOnly(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		w := connect(t)
		start := time.Now()
		out := stream.NewWriter(w.worker, stream.Target{Subject: subject, PingEvery: 10 * time.Second, PingReply: "ping.reply", FirstReply: "first.reply"})
		time.AfterFunc(4*time.Second, func() { _ = out.Write(delta("a")) })
		time.AfterFunc(20*time.Second, func() { _ = out.Write(end("a")) })
		var log []string
		for {
			msg, err := w.sub.NextMsgWithContext(t.Context())
			require.NoError(t, err)
			f, err := llm.DecodeFrame(msg.Data)
			require.NoError(t, err)
			log = append(log, time.Since(start).String()+" "+string(f.Type)+" "+msg.Reply)
			if f.Terminal() {
				break
			}
		}
		require.Equal(t, []string{"4s delta first.reply", "14s ping ping.reply", "20s end "}, log)
	})
}

// A stream that never pauses has no pings, and its caller may be gone all the
// same.
func TestASteadyStreamAsksForItsReader(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		w := connect(t)
		out := stream.NewWriter(w.worker, stream.Target{Subject: subject, PingEvery: 10 * time.Second, PingReply: "ping.reply", FirstReply: "first.reply"})
		var asked []string
		for second := range 31 {
			require.NoError(t, out.Write(delta("a")))
			msg, err := w.sub.NextMsgWithContext(t.Context())
			require.NoError(t, err)
			if msg.Reply != "" {
				asked = append(asked, fmt.Sprint(second, " ", msg.Reply))
			}
			natstest.Advance(time.Second)
		}
		require.Equal(t, []string{"0 first.reply", "10 ping.reply", "20 ping.reply", "30 ping.reply"}, asked)
		require.NoError(t, out.Write(end("")))
	})
}

func TestUnwritableEndBecomesAnError(t *testing.T) {
	for name, broken := range map[string]*llm.Response{"none": nil, "bad JSON": {JSON: json.RawMessage("{")}} {
		t.Run(name, func(t *testing.T) {
			w := connect(t)
			out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
			require.NoError(t, out.Write(llm.Frame{Type: llm.FrameEnd, Response: broken}))
			_, err := w.read(t)
			require.ErrorIs(t, err, llm.ErrInternal)
		})
	}
}

func TestLostConnectionLeavesAGap(t *testing.T) {
	w := connect(t)
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	require.NoError(t, out.Write(delta("a")))
	flush(t, w.worker)
	w.worker.Close()
	err := out.Write(delta("b"))
	require.True(t, errors.Is(err, nats.ErrConnectionClosed), err)
}

func BenchmarkWriteFrame(b *testing.B) {
	w := connect(b)
	require.NoError(b, w.sub.Unsubscribe())
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject, PingEvery: time.Minute})
	frame := delta(" a token")
	b.ReportAllocs()
	for b.Loop() {
		if err := out.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, out.Write(end("")))
}

func TestFramesAreCapturedWithTheSameNumbers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		w := connect(t)
		kept, err := w.caller.SubscribeSync("kept")
		require.NoError(t, err)
		flush(t, w.caller)
		out := stream.NewWriter(w.worker, stream.Target{Subject: subject, Capture: "kept", Greet: true, PingEvery: time.Second})
		require.NoError(t, out.Write(delta("a")))
		natstest.Advance(1500 * time.Millisecond)
		require.NoError(t, out.Write(end("a")))
		for range 4 {
			live, err := w.sub.NextMsgWithContext(t.Context())
			require.NoError(t, err)
			again, err := kept.NextMsgWithContext(t.Context())
			require.NoError(t, err)
			require.Equal(t, string(live.Data), string(again.Data))
			require.Empty(t, again.Header)
		}
	})
}

func TestAStoppedWriterSaysNothingMore(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		w := connect(t)
		out := stream.NewWriter(w.worker, stream.Target{Subject: subject, PingEvery: time.Second})
		natstest.Advance(1500 * time.Millisecond)
		out.Stop()
		require.ErrorIs(t, out.Write(delta("a")), stream.ErrEnded)
		natstest.Advance(time.Minute)
		n, _, err := w.sub.Pending()
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}
