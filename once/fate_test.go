package once_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/once"
	"github.com/llmbus/llmbus/provider/fake"
)

func TestHowACallEndsDecidesWhatIsKept(t *testing.T) {
	asked := []llm.Attempt{{Provider: "fake", Class: llm.OutcomeContentFiltered}}
	for name, tc := range map[string]struct {
		step fake.Step
		code llm.Code // of the first and those who joined
		kept bool
	}{
		"answer":                  {fake.Answer("x"), "", true},
		"fallback":                {fake.Step{Response: &llm.Response{ServedBy: llm.ServedByFallback, Fallback: llm.FallbackStatic}}, "", false},
		"transient":               {fake.Fails(&llm.Error{Code: llm.CodeUnavailable, Attempts: asked}), llm.CodeUnavailable, false},
		"bad luck":                {fake.Fails(&llm.Error{Code: llm.CodeInvalidOutput, Attempts: asked}), llm.CodeInvalidOutput, false},
		"lasting":                 {fake.Fails(&llm.Error{Code: llm.CodeContentFiltered, Attempts: asked}), llm.CodeContentFiltered, true},
		"lasting, nobody asked":   {fake.Fails(&llm.Error{Code: llm.CodeInvalidRequest}), llm.CodeInvalidRequest, false},
		"deadline of the feature": {fake.Fails(&llm.Error{Code: llm.CodeDeadline, Attempts: asked}), llm.CodeDeadline, false},
		"unknown":                 {fake.FailsWith(llm.OutcomeConnect), llm.CodeInternal, false},
	} {
		for form, change := range map[string]func(*llm.Request){"complete": func(*llm.Request) {}, "stream": streamed} {
			t.Run(name+"/"+form, func(t *testing.T) {
				inBubble(t, 2, func(t *testing.T, f *fleet) {
					tc.step.Wait = time.Second
					f.Play(tc.step)
					first := f.workers[0].ask(t.Context(), keyed("1", change))
					settled()
					joined := f.workers[1].ask(t.Context(), keyed("2", change))
					require.NotNil(t, <-first)
					got := <-joined
					if tc.code == "" {
						require.NoError(t, got.err)
						require.True(t, got.Replayed)
					} else {
						require.ErrorIs(t, got.err, &llm.Error{Code: tc.code})
					}
					require.Equal(t, 1, f.Count(), "a failure is shared by those who waited for it")
					again := <-f.workers[1].ask(t.Context(), keyed("3", change))
					if tc.kept {
						require.Equal(t, 1, f.Count())
						require.ErrorIs(t, again.err, got.err)
						return
					}
					require.Equal(t, 2, f.Count(), "the key is free")
				})
			})
		}
	}
}

func TestALargeAnswerIsGivenOnce(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Answer(strings.Repeat("x", 3000)))
		first := <-f.workers[0].ask(t.Context(), keyed("1"))
		require.Len(t, first.Content, 3000)
		require.Empty(t, first.Warnings)
		again := <-f.workers[1].ask(t.Context(), keyed("2"))
		require.ErrorIs(t, again.err, llm.ErrTooLarge)
		require.Equal(t, 1, f.Count())
	})
}

func TestACallThatIsGivenUpIsMadeByOneWhoWaits(t *testing.T) {
	for name, change := range map[string]func(*llm.Request){"complete": func(*llm.Request) {}, "stream": streamed} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, f *fleet) {
				f.Play(fake.Hangs(), fake.Step{Wait: time.Minute, Pieces: []string{"x"}})
				ctx, cancel := context.WithCancelCause(t.Context())
				first := f.workers[0].ask(ctx, keyed("1", change))
				settled()
				var joined []<-chan result
				for range 5 {
					joined = append(joined, f.workers[1].ask(t.Context(), keyed("2")), f.workers[2].ask(t.Context(), keyed("3", streamed)))
				}
				settled()
				began := time.Now()
				cancel(llm.ErrCancelled)
				require.Error(t, (<-first).err)
				replayed := 0
				for _, r := range joined {
					got := <-r
					require.NoError(t, got.err)
					require.Equal(t, "x", got.Content)
					if got.Replayed {
						replayed++
					}
				}
				require.Equal(t, len(joined)-1, replayed)
				require.Equal(t, 2, f.Count())
				require.Less(t, time.Since(began), time.Minute+time.Second, "the next call begins at once")
			})
		})
	}
}

// A reader that goes away, without its context ending, gives the call up.
func TestAReaderThatStopsReadingFreesTheKey(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		for frame := range f.workers[0].Stream(t.Context(), keyed("1", streamed)) {
			if frame.Visible() {
				break
			}
		}
		require.False(t, (<-f.workers[0].ask(t.Context(), keyed("2"))).Replayed)
		require.Equal(t, 2, f.Count())
	})
}

// panics is a Completer with a fault.
type panics struct{ llm.Completer }

func (panics) Complete(context.Context, *llm.Request) (*llm.Response, error)    { panic("fault") }
func (panics) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] { panic("fault") }

func TestAPanicFreesTheKey(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		dial := dialer(t, srv)
		bad := start(t, 1, dial, func(c *once.Config) { c.Next = panics{} })
		defer bad.halt()
		require.Panics(t, func() { _, _ = bad.workers[0].Complete(t.Context(), keyed("1")) })
		require.Panics(t, func() { bad.workers[0].Stream(t.Context(), keyed("1"))(func(llm.Frame, error) bool { return true }) })
		good := start(t, 1, dial)
		defer good.halt()
		require.NoError(t, (<-good.workers[0].ask(t.Context(), keyed("2"))).err)
	})
}
