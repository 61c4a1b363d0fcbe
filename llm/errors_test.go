package llm_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

func TestErrorsMatchByCodeAndKeepTheirCause(t *testing.T) {
	e := llm.Errorf(llm.CodeUnavailable, "asking %s: %w", "p", io.EOF)
	require.Equal(t, "unavailable: asking p: EOF", e.Error())
	require.ErrorIs(t, e, llm.ErrUnavailable)
	require.ErrorIs(t, e, io.EOF)
	require.NotErrorIs(t, e, llm.ErrSwitchedOff)
	require.False(t, errors.Is(io.EOF, llm.ErrUnavailable))
	require.ErrorIs(t, fmt.Errorf("outer: %w", e), llm.ErrUnavailable)
	require.Equal(t, 1500*time.Millisecond, (&llm.Error{RetryAfterMS: 1500}).RetryAfter())
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	for e, want := range map[*llm.Error]int{
		llm.ErrInvalidRequest: 400, llm.ErrBudgetExhausted: 402, llm.ErrPolicyDenied: 403, llm.ErrUnknownFeature: 404,
		llm.ErrTooLarge: 413, llm.ErrContextLength: 413, llm.ErrContentFiltered: 422, llm.ErrRateLimited: 429, llm.ErrBusy: 429,
		llm.ErrCancelled: 499, llm.ErrInternal: 500, llm.ErrInvalidOutput: 502, llm.ErrInterrupted: 502, llm.ErrProviderAuth: 502,
		llm.ErrUnavailable: 503, llm.ErrSwitchedOff: 503, llm.ErrDeadline: 504, {Code: "new"}: 500,
	} {
		require.Equal(t, want, e.Code.Status(), e.Code)
	}
}
