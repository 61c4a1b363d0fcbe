package once_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

func TestDuplicatesJoinTheCallOrGetItsAnswer(t *testing.T) {
	for name, owner := range map[string]func(*llm.Request){"complete": func(*llm.Request) {}, "stream": streamed} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, f *fleet) {
				f.Play(fake.Step{Wait: time.Second, Pieces: []string{"a", "b", "c", "d"}, Gap: time.Second,
					Calls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}, Usage: &llm.Usage{InputTokens: new(int64(3))}})
				first := f.workers[0].ask(t.Context(), keyed("1", owner))
				settled()
				var joined []<-chan result
				for i, w := range f.workers { // before the first text, and amid it
					joined = append(joined, w.ask(t.Context(), keyed("2")), w.ask(t.Context(), keyed("3", streamed)))
					natstest.Advance(time.Duration(i) * 1300 * time.Millisecond)
				}
				got := <-first
				require.NoError(t, got.err)
				require.False(t, got.Replayed)
				settled()
				for _, w := range f.workers { // when all is over
					joined = append(joined, w.ask(t.Context(), keyed("4")), w.ask(t.Context(), keyed("5", streamed)))
				}
				for _, r := range joined {
					r := <-r
					require.NoError(t, r.err)
					require.True(t, r.Replayed)
					require.Equal(t, "abcd", r.Content)
					require.Equal(t, got.ToolCalls, r.ToolCalls)
					require.Equal(t, got.Usage, r.Usage)
					if r.types != nil {
						require.Equal(t, "abcd", r.text)
						require.Equal(t, llm.FrameStart, r.types[0])
						require.Equal(t, []llm.FrameType{llm.FrameToolCall, llm.FrameEnd}, r.types[len(r.types)-2:])
					}
				}
				require.Equal(t, 1, f.Count())
			})
		})
	}
}

func TestFramesComeToAllAtTheSameTime(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		pieces := []string{strings.Repeat("ü", 1<<20), "b", "c"} // more than one message holds
		f.Play(fake.Step{Pieces: pieces, Gap: time.Minute})
		first := f.workers[0].ask(t.Context(), keyed("1", streamed))
		settled()
		came := map[llm.FrameType]time.Duration{}
		began, text := time.Now(), ""
		for frame, err := range f.workers[1].Stream(t.Context(), keyed("2", streamed)) {
			require.NoError(t, err)
			text += frame.Text
			came[frame.Type] = time.Since(began).Round(time.Minute)
		}
		require.Equal(t, strings.Join(pieces, ""), text)
		require.Equal(t, map[llm.FrameType]time.Duration{llm.FrameStart: 0, llm.FrameDelta: 2 * time.Minute, llm.FrameEnd: 2 * time.Minute}, came)
		require.Equal(t, text, (<-first).Content)
	})
}

func TestAReplayKeepsWhatBelongsToTheRequest(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Step{Response: &llm.Response{Content: "x", CostUSD: 0.5, Warnings: []string{"adapted"}}})
		of := func(trace string) func(*llm.Request) {
			return func(r *llm.Request) { r.Metadata, r.Warnings = json.RawMessage(trace), []string{"unknown " + trace} }
		}
		first := <-f.workers[0].ask(t.Context(), keyed("1", of("1")))
		again := <-f.workers[1].ask(t.Context(), keyed("2", of("2")))
		require.NoError(t, again.err)
		require.Equal(t, []string{"adapted", "unknown 1"}, first.Warnings)
		require.Equal(t, &llm.Response{ID: "2", Content: "x", Provider: "fake", ServedBy: llm.ServedByModel, CostUSD: 0.5, Replayed: true,
			Metadata: json.RawMessage("2"), Warnings: []string{"adapted", "unknown 2"}}, again.Response)
	})
}

func TestAnotherBodyIsRefused(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Step{Wait: time.Second, Pieces: []string{"x"}})
		other := func(r *llm.Request) { r.MaxTokens = 5 }
		first := f.workers[0].ask(t.Context(), keyed("1"))
		for range 2 { // while the call runs, and after it
			settled()
			got := <-f.workers[1].ask(t.Context(), keyed("2", other))
			require.ErrorIs(t, got.err, llm.ErrInvalidRequest)
			require.ErrorContains(t, got.err, "idempotency_key")
			natstest.Advance(2 * time.Second)
		}
		require.NoError(t, (<-first).err)
		require.Equal(t, 1, f.Count())
	})
}

func TestAKeyBelongsToATenantAndAFeature(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		for _, change := range []func(*llm.Request){
			func(*llm.Request) {}, func(r *llm.Request) { r.Tenant = "other" }, func(r *llm.Request) { r.Tenant = "" },
			func(r *llm.Request) { r.Feature = "g" }, func(r *llm.Request) { r.IdempotencyKey = "order.17" },
		} {
			got := <-f.workers[0].ask(t.Context(), keyed("1", change))
			require.NoError(t, got.err)
			require.False(t, got.Replayed)
		}
		require.Equal(t, 5, f.Count())
	})
}

func TestAKeyCountsForItsWindow(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		for range 2 {
			require.False(t, (<-f.workers[0].ask(t.Context(), keyed("1"))).Replayed)
			natstest.Advance(50 * time.Minute)
			require.True(t, (<-f.workers[0].ask(t.Context(), keyed("2"))).Replayed)
			natstest.Advance(20 * time.Minute)
		}
	})
}

func TestOneWhoJoinedMayLeave(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Step{Pieces: []string{"a", "b"}, Gap: time.Minute})
		first := f.workers[0].ask(t.Context(), keyed("1", streamed))
		settled()
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves := f.workers[1].ask(ctx, keyed("2"))
		for range f.workers[1].Stream(t.Context(), keyed("3", streamed)) {
			break
		}
		settled()
		cancel(llm.ErrCancelled)
		require.ErrorIs(t, (<-leaves).err, llm.ErrCancelled)
		require.NoError(t, (<-first).err)
		require.Equal(t, 1, f.Count())
	})
}

// Others see the claim of a call before its worker hears that it holds. Whoever
// asks then must not be told that there is no call.
func TestACallCanBeFollowedFromItsClaimOn(t *testing.T) {
	srv := natstest.Server(t)
	f := start(t, 1, dialer(t, srv))
	defer f.halt()
	f.Play(fake.Step{Wait: 20 * time.Millisecond, Pieces: []string{"x"}})
	early := natstest.Connect(t, srv)
	ends := make(chan llm.FrameType, 50)
	_, err := early.Subscribe("$KV.llm_requests.>", func(msg *nats.Msg) {
		var claim struct{ State, Call string }
		if json.Unmarshal(msg.Data, &claim) == nil && claim.State == "running" {
			_ = early.PublishRequest("llm.follow.w=2E0", "_INBOX.early", fmt.Appendf(nil, `{"call":%q,"who":"early"}`, claim.Call))
		}
	})
	require.NoError(t, err)
	_, err = early.Subscribe("_INBOX.early", func(msg *nats.Msg) {
		if frame, err := llm.DecodeFrame(msg.Data); err != nil || frame.Terminal() {
			ends <- frame.Type
		}
	})
	require.NoError(t, err)
	require.NoError(t, early.FlushTimeout(patience))
	for i := range cap(ends) {
		require.NoError(t, (<-f.workers[0].ask(t.Context(), keyed("1", func(r *llm.Request) { r.IdempotencyKey = fmt.Sprint(i) }))).err)
		require.Equal(t, llm.FrameEnd, <-ends)
	}
}
