package vectors

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Result is what came of one call.
type Result struct {
	Response *llm.Response
	Failure  *provider.Failure
	Visible  string // text of the frames
}

// Ask makes the one call of a case, streaming or not, and leaves it when the
// case says that the caller does.
func Ask(t testing.TB, c llm.Completer, v *Vector) Result {
	t.Helper()
	req, err := v.LLM()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if after := v.Request.CancelAfterMS; after > 0 {
		timer := time.AfterFunc(time.Duration(after)*time.Millisecond, cancel)
		defer timer.Stop()
	}
	if v.Stream {
		return stream(ctx, t, c, req)
	}
	resp, err := c.Complete(ctx, req)
	return result(t, resp, err)
}

func stream(ctx context.Context, t testing.TB, c llm.Completer, req *llm.Request) Result {
	t.Helper()
	var text strings.Builder
	var end *llm.Response
	var failed error
	calls := map[int]*llm.ToolCall{}
	for frame, err := range c.Stream(ctx, req) {
		require.Nil(t, end, "nothing follows the end")
		require.NoError(t, failed, "nothing follows an error")
		failed = err
		switch frame.Type {
		case llm.FrameDelta:
			text.WriteString(frame.Text)
		case llm.FrameToolCall:
			call, known := calls[frame.Index]
			if !known {
				call = new(llm.ToolCall)
				calls[frame.Index] = call
			}
			call.ID += frame.ID
			call.Name += frame.Name
			call.Arguments += frame.Arguments
		case llm.FrameEnd:
			end = frame.Response
		}
	}
	r := result(t, end, failed)
	r.Visible = text.String()
	if end != nil {
		require.Equal(t, end.Content, r.Visible, "the frames make up the text")
		require.Len(t, calls, len(end.ToolCalls))
		for i, c := range end.ToolCalls {
			require.Equal(t, c.ID, calls[i].ID)
			require.Equal(t, c.Name, calls[i].Name)
			require.Equal(t, asJSON(orEmpty(c.Arguments)), asJSON(orEmpty(calls[i].Arguments)))
		}
	}
	return r
}

func result(t testing.TB, resp *llm.Response, err error) Result {
	t.Helper()
	if err == nil {
		require.NotNil(t, resp, "an answer or an error")
		return Result{Response: resp}
	}
	require.Nil(t, resp, "an error and no answer")
	require.ErrorAs(t, err, new(*provider.Failure))
	return Result{Failure: provider.AsFailure(err)}
}

// Class is that of the result, as a caller who was shown all visible text would
// have to see it.
func (r *Result) Class() llm.Outcome {
	if r.Failure == nil {
		return llm.OutcomeOK
	}
	switch r.Failure.Outcome {
	case llm.OutcomeIdleTimeout, llm.OutcomeCancelled, llm.OutcomeContentFiltered:
		return r.Failure.Outcome
	}
	if r.Visible != "" {
		return llm.OutcomeInterrupted
	}
	return r.Failure.Outcome
}

// CheckAdapter compares what an adapter concluded with the expectation. What
// only package chain judges, whether an answer fits its request, is left out.
func (v *Vector) CheckAdapter(t testing.TB, r Result) {
	t.Helper()
	e := &v.Expect
	if e.Class == llm.OutcomeInvalidOutput && r.Response != nil {
		answered := r.Response.Content != "" || len(r.Response.ToolCalls) > 0
		require.True(t, answered, "an empty answer is judged by the adapter: %s", v.Why)
		return
	}
	require.Equal(t, e.Class, r.Class(), "%s: %v", v.Why, r.Failure)
	if r.Failure != nil {
		v.checkFailure(t, &r)
		return
	}
	v.checkResponse(t, r.Response)
}

func (v *Vector) checkFailure(t testing.TB, r *Result) {
	t.Helper()
	e, f := &v.Expect, r.Failure
	if e.RetryAfterMS == nil {
		require.Nil(t, f.RetryAfter)
	} else {
		require.NotNil(t, f.RetryAfter)
		require.Equal(t, *e.RetryAfterMS, f.RetryAfter.Milliseconds())
	}
	want := ""
	if e.Content != nil {
		want = *e.Content
	}
	require.Equal(t, want, r.Visible)
	if e.Usage != nil { // a failure may know more than a case asks for
		checkUsage(t, e.Usage, f.Usage)
	}
	if e.RequestID != nil {
		require.Equal(t, *e.RequestID, f.RequestID)
	}
}

func (v *Vector) checkResponse(t testing.TB, resp *llm.Response) {
	t.Helper()
	e := &v.Expect
	want := ""
	if e.Content != nil {
		want = *e.Content
	}
	require.Equal(t, want, resp.Content)
	require.Equal(t, e.FinishReason, resp.FinishReason)
	checkUsage(t, e.Usage, resp.Usage)
	checkCalls(t, e.ToolCalls, resp.ToolCalls)
	if e.Reasoning != nil {
		require.Equal(t, *e.Reasoning, resp.Reasoning)
	}
	if e.RequestID != nil {
		require.Equal(t, *e.RequestID, resp.ProviderRequestID)
	}
}

func checkCalls(t testing.TB, want []ExpectCall, got []llm.ToolCall) {
	t.Helper()
	require.Len(t, got, len(want))
	ids := make(map[string]bool)
	for i, c := range got {
		require.NotEmpty(t, c.ID)
		require.False(t, ids[c.ID], "tool call ids are unique")
		ids[c.ID] = true
		if want[i].ID != "" {
			require.Equal(t, want[i].ID, c.ID)
		}
		require.Equal(t, want[i].Name, c.Name)
		require.JSONEq(t, string(want[i].Arguments), orEmpty(c.Arguments))
	}
}

func orEmpty(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	return arguments
}

func checkUsage(t testing.TB, want map[string]*int64, got *llm.Usage) {
	t.Helper()
	if want == nil {
		require.Nil(t, got, "an unknown usage is nil")
		return
	}
	require.NotNil(t, got)
	counts := map[string]*int64{
		"input_tokens": got.InputTokens, "output_tokens": got.OutputTokens, "reasoning_tokens": got.ReasoningTokens,
		"cached_input_tokens": got.CachedInputTokens, "cache_write_tokens": got.CacheWriteTokens,
	}
	for name, n := range want {
		require.Equal(t, n, counts[name], name)
	}
}
