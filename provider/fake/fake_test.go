package fake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

var ask = &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}

func TestCompleteFollowsTheScriptAndRepeatsItsLastStep(t *testing.T) {
	p := fake.New(fake.FailsWith(llm.OutcomeConnect), fake.Answer("a", "b"))

	_, err := p.Complete(t.Context(), ask)
	require.Equal(t, llm.OutcomeConnect, provider.AsFailure(err).Outcome)
	for range 2 {
		resp, err := p.Complete(t.Context(), ask)
		require.NoError(t, err)
		require.Equal(t, "ab", resp.Content)
		require.Equal(t, llm.FinishStop, resp.FinishReason)
	}
	require.Equal(t, 3, p.Count())
	require.Zero(t, p.Running())

	p.Play(fake.CallsTools(llm.ToolCall{ID: "1", Name: "f", Arguments: "{}"}))
	resp, err := p.Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, llm.FinishToolCalls, resp.FinishReason)
}

func TestStreamYieldsPiecesWithGapsThenTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Step{Wait: time.Second, Reasoning: "hm", Pieces: []string{"a", "b"}, Gap: time.Minute})
		var types []llm.FrameType
		var last llm.Frame
		start := time.Now()
		for frame, err := range p.Stream(t.Context(), ask) {
			require.NoError(t, err)
			types, last = append(types, frame.Type), frame
		}
		require.Equal(t, []llm.FrameType{llm.FrameReasoning, llm.FrameDelta, llm.FrameDelta, llm.FrameEnd}, types)
		require.Equal(t, "ab", last.Response.Content)
		require.Equal(t, time.Second+2*time.Minute, time.Since(start))
	})
}

func TestStreamFailsAfterItsPiecesOrIsCut(t *testing.T) {
	broken := provider.Fail(llm.OutcomeUnavailable, nil)
	for name, step := range map[string]fake.Step{
		"fails": {Pieces: []string{"a"}, Err: broken},
		"cut":   {Pieces: []string{"a"}, Truncate: true},
	} {
		t.Run(name, func(t *testing.T) {
			var frames int
			var failure error
			for frame, err := range fake.New(step).Stream(t.Context(), ask) {
				require.False(t, frame.Terminal())
				failure = err
				frames++
			}
			if step.Truncate {
				require.NoError(t, failure)
				require.Equal(t, 1, frames)
				return
			}
			require.ErrorIs(t, failure, broken)
		})
	}
}

func TestHangEndsWithTheContextAndIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		p := fake.New(fake.Hangs(), fake.Step{Until: make(chan struct{})}, fake.Step{Wait: time.Hour})
		for range 3 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
			_, err := p.Complete(ctx, ask)
			require.Equal(t, llm.OutcomeCancelled, provider.AsFailure(err).Outcome)
			cancel()
		}
		for _, call := range p.Calls() {
			require.True(t, call.Ended)
			require.ErrorIs(t, call.Cause, gone)
		}
	})
}

func TestRunningAndPeakCountCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := fake.Func(func(int, *llm.Request) fake.Step { return fake.Step{Until: gate} })
		done := make(chan struct{})
		for range 3 {
			go func() {
				_, _ = p.Complete(t.Context(), ask)
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		require.Equal(t, 3, p.Running())
		close(gate)
		for range 3 {
			<-done
		}
		require.Zero(t, p.Running())
		require.Equal(t, 3, p.Peak())
	})
}
