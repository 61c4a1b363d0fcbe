package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/stream"
)

func TestStreamYieldsTheAnswerAsItComes(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		weather := llm.ToolCall{ID: "1", Name: "f", Arguments: "{}"}
		r := newRig(t)
		r.work(t, model{fake.New(fake.Step{Wait: 25 * time.Second, Pieces: []string{"he", "llo"}, Gap: time.Second, Calls: []llm.ToolCall{weather}})})
		began := time.Now()
		var types []llm.FrameType
		var last llm.Frame
		for f, err := range r.client.Stream(t.Context(), ask()) {
			require.NoError(t, err)
			if types = append(types, f.Type); len(types) == 2 {
				require.Equal(t, 25*time.Second, time.Since(began))
			}
			last = f
		}
		require.Equal(t, []llm.FrameType{llm.FrameStart, llm.FrameDelta, llm.FrameDelta, llm.FrameToolCall, llm.FrameEnd}, types, "pings are not passed on")
		require.Equal(t, "hello", last.Response.Content)
		require.Equal(t, []llm.ToolCall{weather}, last.Response.ToolCalls)
	})
}

func TestStreamPassesARestartOn(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.play(t, func(p *played) {
			p.delta(1, "old")
			p.frame(llm.Frame{Seq: 2, Attempt: 2, Type: llm.FrameStart, Provider: "other"})
			p.frame(llm.Frame{Seq: 3, Attempt: 2, Type: llm.FrameDelta, Text: "new"})
			p.frame(llm.Frame{Seq: 4, Attempt: 2, Type: llm.FrameEnd, Response: &llm.Response{ServedBy: llm.ServedByModel}})
		})
		frames, err := collect(r.client.Stream(t.Context(), ask()))
		require.NoError(t, err)
		require.Equal(t, 2, frames[1].Attempt)
		require.Equal(t, llm.FrameStart, frames[1].Type)
		require.Equal(t, "new", frames[3].Response.Content)
	})
}

func TestGapsAreFilledFromTheReplyOrReported(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(p *played)
		text string
		want error
	}{
		"gap in the middle":    {func(p *played) { p.delta(1, "a"); p.delta(3, "c"); p.end(4); p.reply("abc") }, "abc", nil},
		"end lost":             {func(p *played) { p.delta(1, "a"); p.reply("ab") }, "ab", nil},
		"everything lost":      {func(p *played) { p.reply("abc") }, "abc", nil},
		"nothing missing":      {func(p *played) { p.delta(1, "a"); p.reply("a") }, "a", nil},
		"another answer":       {func(p *played) { p.delta(1, "x"); p.delta(3, "c"); p.reply("abc") }, "x", llm.ErrInterrupted},
		"failed after a gap":   {func(p *played) { p.delta(1, "a"); p.delta(3, "c"); p.refuse(llm.CodeDeadline, 0) }, "a", llm.ErrDeadline},
		"no reply after a gap": {func(p *played) { p.delta(1, "a"); p.delta(3, "c"); p.end(4) }, "a", llm.ErrInterrupted},
		"worker died silent":   {func(p *played) {}, "", llm.ErrUnavailable},
		"worker died midway":   {func(p *played) { p.delta(1, "a") }, "a", llm.ErrInterrupted},
		"foreign frame":        {func(p *played) { p.delta(1, "a"); p.frame(llm.Frame{Type: "x"}) }, "a", llm.ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := newRig(t, client.WithTimeout(time.Hour))
				r.play(t, tc.play)
				began := time.Now()
				frames, err := collect(r.client.Stream(t.Context(), ask()))
				require.Equal(t, tc.text, text(frames))
				require.LessOrEqual(t, time.Since(began), 31*time.Second)
				if tc.want != nil {
					require.ErrorIs(t, err, tc.want)
					return
				}
				require.NoError(t, err)
				last := frames[len(frames)-1]
				require.Equal(t, tc.text, last.Response.Content)
				require.EqualValues(t, len(frames), last.Seq)
			})
		})
	}
}

func TestRefusedStreamsAreTriedAgain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		calls := 0
		r.play(t, func(p *played) {
			if calls++; calls < 3 {
				p.refuse(llm.CodeBusy, 100)
				return
			}
			p.delta(1, "a")
			p.end(2)
		})
		frames, err := collect(r.client.Stream(t.Context(), ask()))
		require.NoError(t, err)
		require.Equal(t, "a", text(frames))
		require.Equal(t, 3, calls)
	})
}

func TestLeavingTheLoopCancels(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Step{Pieces: []string{"a", "b"}, Gap: time.Hour})
		r := newRig(t)
		r.work(t, model{p})
		for f, err := range r.client.Stream(t.Context(), ask()) {
			require.NoError(t, err)
			if f.Visible() {
				break
			}
		}
		synctest.Wait()
		require.Zero(t, p.Running())
		require.ErrorIs(t, p.Calls()[0].Cause, llm.ErrCancelled)
		require.Equal(t, 0, r.nc.NumSubscriptions())
	})
}

func TestAnEndedContextCancelsTheStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := newRig(t)
		r.work(t, model{p})
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(gone) })
		frames, err := collect(r.client.Stream(ctx, ask()))
		require.Len(t, frames, 1)
		require.ErrorIs(t, err, gone)
		synctest.Wait()
		require.Zero(t, p.Running())
	})
}

func TestASlowReaderStillGetsItAll(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		pieces := make([]string, 5000)
		for i := range pieces {
			pieces[i] = "x"
		}
		r := newRig(t)
		r.nc.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
		r.work(t, model{fake.New(fake.Answer(pieces...))})
		var shown string
		for f, err := range r.client.Stream(t.Context(), ask()) {
			require.NoError(t, err)
			if f.Visible() && shown == "" {
				<-time.After(time.Second) // meanwhile frames are dropped
			}
			shown += f.Text
		}
		require.Equal(t, strings.Join(pieces, ""), shown)
	})
}

func TestAClosedConnectionEndsTheStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.work(t, model{fake.New(fake.Step{Pieces: []string{"a"}, Hang: true})})
		time.AfterFunc(time.Second, r.nc.Close)
		began := time.Now()
		frames, err := collect(r.client.Stream(t.Context(), ask()))
		require.Equal(t, "a", text(frames))
		require.ErrorIs(t, err, llm.ErrInterrupted)
		require.ErrorIs(t, err, stream.ErrTruncated)
		require.Equal(t, time.Second, time.Since(began))
	})
}
