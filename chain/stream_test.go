package chain_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

func types(frames []llm.Frame) (list []llm.FrameType) {
	for _, f := range frames {
		list = append(list, f.Type)
	}
	return list
}

func TestStreamCommitsOnTheFirstVisibleText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := fake.Step{Reasoning: "thinking", Err: failure(llm.OutcomeUnavailable, "")}
		rig := newRig(t, nil, fake.New(broken), fake.New(fake.Answer("x", "y")))
		got := stream(t.Context(), rig, ask())
		require.Nil(t, got.err)
		require.Equal(t, []llm.FrameType{llm.FrameStart, llm.FrameDelta, llm.FrameDelta, llm.FrameEnd}, types(got.frames))
		require.Equal(t, "b", got.frames[0].Provider)
		for _, f := range got.frames {
			require.Equal(t, 2, f.Attempt)
		}
		require.Equal(t, "xy", got.resp.Content)
		require.Contains(t, rig.events.names(), chain.EventFailoverSucceeded)
	})
}

func TestStreamBrokenAfterCommit(t *testing.T) {
	cut := fake.Step{Pieces: []string{"partial "}, Err: failure(llm.OutcomeUnavailable, "")}
	t.Run("error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rig := newRig(t, nil, fake.New(cut), fake.New(fake.Answer("whole")))
			got := stream(t.Context(), rig, ask())
			require.Equal(t, llm.CodeInterrupted, got.err.Code)
			require.Equal(t, "partial ", got.text())
			require.Equal(t, map[string]int{"a": 1, "b": 0}, rig.counts())
			require.Equal(t, llm.OutcomeInterrupted, got.err.Attempts[0].Class)
			require.True(t, got.err.Attempts[0].Usage.Estimated, "what was sent is billed")
			require.Contains(t, rig.events.names(), chain.EventStreamInterrupted)
		})
	})
	t.Run("restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rig := newRig(t, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart }, fake.New(cut), fake.New(fake.Answer("whole")))
			got := stream(t.Context(), rig, ask())
			require.Nil(t, got.err)
			require.Equal(t, []llm.FrameType{llm.FrameStart, llm.FrameDelta, llm.FrameStart, llm.FrameDelta, llm.FrameEnd}, types(got.frames))
			require.Equal(t, []int{1, 1, 2, 2, 2}, []int{got.frames[0].Attempt, got.frames[1].Attempt, got.frames[2].Attempt, got.frames[3].Attempt, got.frames[4].Attempt})
			require.Equal(t, "whole", got.text())
		})
	})
	t.Run("restart with nobody left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rig := newRig(t, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart }, fake.New(cut), fake.New(cut))
			got := stream(t.Context(), rig, ask())
			require.Equal(t, llm.CodeInterrupted, got.err.Code)
			require.Equal(t, map[string]int{"a": 1, "b": 1}, rig.counts())
		})
	})
}

func TestABrokenStreamThatNobodyReplacesIsInterrupted(t *testing.T) {
	cut := fake.Step{Pieces: []string{"partial "}, Err: failure(llm.OutcomeUnavailable, "")}
	for name, second := range map[string]*provider.Failure{
		"rejects the transcript": failure(llm.OutcomeInvalidRequest, ""),
		"has too small a window": failure(llm.OutcomeContextLength, ""),
		"is down":                failure(llm.OutcomeUnavailable, ""),
		"has no credit":          failure(llm.OutcomeQuotaExhausted, ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart }, fake.New(cut), fake.New(fake.Fails(second)))
				got := stream(t.Context(), rig, ask())
				require.Equal(t, llm.CodeInterrupted, got.err.Code, "the first took the request and began to answer it")
				require.Equal(t, "partial ", got.text())
				require.Len(t, got.err.Attempts, 2)
				require.Equal(t, second.Outcome, got.err.Attempts[1].Class)
			})
		})
	}
	t.Run("passes its deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rig := newRig(t, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart }, fake.New(cut), fake.New(fake.Hangs()))
			require.Equal(t, llm.CodeDeadline, stream(t.Context(), rig, ask()).err.Code)
		})
	})
}

func TestStreamThatStopsWithoutAnEndIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, nil, fake.New(fake.Step{Pieces: []string{"half"}, Truncate: true}))
		got := stream(t.Context(), rig, ask())
		require.Equal(t, llm.CodeInterrupted, got.err.Code)
		require.Nil(t, got.resp)
	})
}

func TestCommitAfterCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := fake.Step{Pieces: []string{"12", "34"}, Err: failure(llm.OutcomeUnavailable, "")}
		tune := func(f *chain.Feature) { f.Commit = chain.Commit{Characters: 5} }
		rig := newRig(t, tune, fake.New(cut), fake.New(fake.Answer("abc", "def", "g")))
		got := stream(t.Context(), rig, ask())
		require.Nil(t, got.err)
		require.Equal(t, "abcdefg", got.text(), "four characters did not commit to a")
	})
}

func TestCommitAfterTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := fake.Step{Pieces: []string{"1", "2", "3"}, Gap: time.Second, Err: failure(llm.OutcomeUnavailable, "")}
		rig := newRig(t, func(f *chain.Feature) { f.Commit = chain.Commit{After: 2 * time.Second} }, fake.New(cut), fake.New())
		got := stream(t.Context(), rig, ask())
		require.Equal(t, llm.CodeInterrupted, got.err.Code)
		require.Equal(t, "123", got.text())
	})
}

func TestToolCallsAreHeldUntilTheyAreValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := ask()
		req.Tools = []llm.Tool{{Name: "known"}}
		bad := fake.New(fake.CallsTools(llm.ToolCall{ID: "1", Name: "known", Arguments: `{"a":`}))
		good := fake.New(fake.CallsTools(llm.ToolCall{ID: "2", Name: "known", Arguments: `{"a":1}`}))
		rig := newRig(t, nil, bad, good)
		got := stream(t.Context(), rig, req)
		require.Nil(t, got.err)
		require.Equal(t, []llm.FrameType{llm.FrameStart, llm.FrameToolCall, llm.FrameEnd}, types(got.frames))
		require.Equal(t, "2", got.frames[1].ID)
		require.Equal(t, breaker.Closed, rig.state("a"))
		require.Contains(t, rig.events.names(), chain.EventOutputInvalid)
	})
}

func TestStructuredTextIsShownOnlyWhenItIsValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := ask()
		req.JSONSchema = &llm.JSONSchema{Schema: []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)}
		rig := newRig(t, nil, fake.New(fake.Answer(`{"n":`, `"x"}`)), fake.New(fake.Answer(`{"n":`, `1}`)))
		got := stream(t.Context(), rig, req)
		require.Nil(t, got.err)
		require.Equal(t, `{"n":1}`, got.text())
		require.JSONEq(t, `{"n":1}`, string(got.resp.JSON))
	})
}

func TestReaderThatLeavesFreesTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.Step{Pieces: []string{"1", "2", "3"}, Gap: time.Minute})
		rig := newRig(t, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart }, a, fake.New())
		for range rig.Stream(t.Context(), streamed()) {
			break
		}
		require.Zero(t, a.Running())
		require.Equal(t, map[string]int{"a": 1, "b": 0}, rig.counts())
		require.Equal(t, breaker.Closed, rig.state("a"))
	})
}

func TestCancelInMidStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.Step{Pieces: []string{"1", "2"}, Gap: time.Hour})
		rig := newRig(t, nil, a)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(llm.ErrCancelled) })
		got := stream(ctx, rig, ask())
		require.Equal(t, llm.CodeCancelled, got.err.Code)
		require.Equal(t, time.Second, got.took)
		require.Zero(t, a.Running())
		require.Equal(t, llm.OutcomeCancelled, got.err.Attempts[0].Class)
	})
}

func streamed() *llm.Request {
	req := ask()
	req.Stream = true
	return req
}

// A provider that accepts a call and then dies in mid-answer is not well: what
// counts is the end of a stream, not that it opened.
func TestAProbeIsGoodAtTheEndOfItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.FailsWith(llm.OutcomeUnavailable))
		rig := newRig(t, nil, a)
		for range 5 {
			complete(t.Context(), rig, ask())
		}
		require.Equal(t, breaker.Open, rig.state("a"))
		pass(12 * time.Second)
		a.Play(fake.Answer("1", "2"))
		for f, err := range rig.Stream(t.Context(), streamed()) {
			require.NoError(t, err)
			if f.Type == llm.FrameDelta {
				require.Equal(t, breaker.HalfOpen, rig.state("a"))
			}
		}
		require.Equal(t, breaker.Closed, rig.state("a"))
	})
}

// No lock is held while a provider is called.
func TestCallsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fake.New(fake.Step{Wait: time.Second, Pieces: []string{"x"}})
		rig := newRig(t, nil, a)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { complete(t.Context(), rig, ask()) })
		}
		began := time.Now()
		wg.Wait()
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, 100, a.Peak())
	})
}

// Whoever reads frames, as OpenAI's SDKs do, must get the JSON alone, too.
func TestAStreamShowsAnAnswerAsItWasRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, func(f *chain.Feature) { f.Repair = chain.RepairFence }, fake.New(fake.Answer("```json\n{\"n\"", ": 1}\n", "```\n")))
		req := ask()
		req.JSONSchema = &llm.JSONSchema{Schema: []byte(`{"type":"object"}`)}
		got := stream(t.Context(), rig, req)
		require.Nil(t, got.err)
		require.Equal(t, `{"n": 1}`, got.resp.Content)
		require.Equal(t, got.resp.Content, got.text())
	})
}
