package provider_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

var (
	ask    = &llm.Request{Model: "m"}
	limits = provider.Timeouts{FirstToken: 10 * time.Second, Idle: 2 * time.Second, Total: time.Minute}
)

// consume reads a stream, taking pause over each frame.
func consume(ctx context.Context, c llm.Completer, pause time.Duration) (frames int, end *llm.Response, err error) {
	for frame, failure := range c.Stream(ctx, ask) {
		if err = failure; err != nil {
			return frames, nil, err
		}
		frames, end = frames+1, frame.Response
		<-time.After(pause) // fake time, in a bubble
	}
	return frames, end, nil
}

func TestStreamIsCutByTheLimitThatPassed(t *testing.T) {
	word := []string{"a", "b", "c"}
	for name, tc := range map[string]struct {
		step    fake.Step
		limit   provider.Timeouts
		reading time.Duration
		frames  int
		outcome llm.Outcome
		after   time.Duration
	}{
		"within all limits":            {fake.Step{Wait: 9 * time.Second, Pieces: word, Gap: time.Second}, limits, 0, 4, llm.OutcomeOK, 11 * time.Second},
		"no first token":               {fake.Step{Wait: 11 * time.Second, Pieces: word}, limits, 0, 0, llm.OutcomeFirstTokenTimeout, 10 * time.Second},
		"a gap":                        {fake.Step{Pieces: word, Gap: 3 * time.Second}, limits, 0, 1, llm.OutcomeIdleTimeout, 2 * time.Second},
		"silence after the last piece": {fake.Step{Pieces: word, Gap: time.Second, Hang: true}, limits, 0, 3, llm.OutcomeIdleTimeout, 4 * time.Second},
		"reasoning ends the wait":      {fake.Step{Wait: 9 * time.Second, Reasoning: "hm", Pieces: word, Hang: true}, limits, 0, 4, llm.OutcomeIdleTimeout, 11 * time.Second},
		"a slow reader is not a gap":   {fake.Step{Pieces: word}, limits, 5 * time.Second, 4, llm.OutcomeOK, 20 * time.Second},
		"a slow reader uses the total": {fake.Step{Pieces: word, Hang: true}, limits, 25 * time.Second, 3, llm.OutcomeTimeout, 75 * time.Second},
		"a gap behind a slow reader":   {fake.Step{Pieces: word, Hang: true}, limits, 5 * time.Second, 3, llm.OutcomeIdleTimeout, 17 * time.Second},
		"a gap behind short ones":      {fake.Step{Pieces: word, Gap: 1900 * time.Millisecond, Hang: true}, limits, 0, 3, llm.OutcomeIdleTimeout, 5800 * time.Millisecond},
		"total":                        {fake.Step{Pieces: word, Hang: true}, provider.Timeouts{Total: time.Minute}, 0, 3, llm.OutcomeTimeout, time.Minute},
		"no limits":                    {fake.Step{Wait: time.Hour, Pieces: word, Gap: time.Hour}, provider.Timeouts{}, 0, 4, llm.OutcomeOK, 3 * time.Hour},
		"only a limit on gaps":         {fake.Step{Wait: time.Hour, Pieces: word, Gap: 3 * time.Second}, provider.Timeouts{Idle: time.Second}, 0, 1, llm.OutcomeIdleTimeout, time.Hour + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := fake.New(tc.step)
				start := time.Now()
				frames, end, err := consume(t.Context(), &provider.Timed{Inner: inner, Limit: tc.limit}, tc.reading)
				require.Equal(t, tc.frames, frames)
				require.Equal(t, tc.after, time.Since(start))
				require.Zero(t, inner.Running())
				if tc.outcome == llm.OutcomeOK {
					require.NoError(t, err)
					require.Equal(t, "abc", end.Content)
					return
				}
				require.Equal(t, tc.outcome, provider.AsFailure(err).Outcome)
			})
		})
	}
}

// chatter sends frames that show no work, until its context ends.
type chatter struct{ llm.Completer }

func (chatter) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for ctx.Err() == nil && yield(llm.Frame{Type: llm.FrameDelta}, nil) {
			select {
			case <-every.C:
			case <-ctx.Done():
			}
		}
		yield(llm.Frame{}, errors.New("anything"))
	}
}

func TestFramesWithoutWorkReArmNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, _, err := consume(t.Context(), &provider.Timed{Inner: chatter{}, Limit: limits}, 0)
		require.Equal(t, llm.OutcomeFirstTokenTimeout, provider.AsFailure(err).Outcome)
		require.Equal(t, limits.FirstToken, time.Since(start))
	})
}

func TestCompleteIsBoundByTotalOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timed := &provider.Timed{Inner: fake.New(fake.Step{Wait: 59 * time.Second}, fake.Hangs()), Limit: limits}
		_, err := timed.Complete(t.Context(), ask)
		require.NoError(t, err)

		start := time.Now()
		_, err = timed.Complete(t.Context(), ask)
		require.Equal(t, llm.OutcomeTimeout, provider.AsFailure(err).Outcome)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestTheCallersReasonIsKept(t *testing.T) {
	for cause, outcome := range map[error]llm.Outcome{
		context.Canceled: llm.OutcomeCancelled, errors.New("gone"): llm.OutcomeCancelled,
		llm.ErrDeadline: llm.OutcomeTimeout, context.DeadlineExceeded: llm.OutcomeTimeout,
		provider.Fail(llm.OutcomeInterrupted, nil): llm.OutcomeInterrupted,
	} {
		synctest.Test(t, func(t *testing.T) {
			timed := &provider.Timed{Inner: fake.New(fake.Hangs()), Limit: limits}
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(time.Second, func() { cancel(cause) })
			defer timer.Stop()
			_, err := timed.Complete(ctx, ask)
			require.Equal(t, outcome, provider.AsFailure(err).Outcome)
			_, _, err = consume(ctx, timed, 0)
			require.Equal(t, outcome, provider.AsFailure(err).Outcome)
		})
	}
}

func TestOtherFailuresPassThrough(t *testing.T) {
	broken := provider.Fail(llm.OutcomeUnavailable, nil)
	timed := &provider.Timed{Inner: fake.New(fake.Fails(broken)), Limit: limits}
	_, err := timed.Complete(t.Context(), ask)
	require.Same(t, broken, err)
	_, _, err = consume(t.Context(), timed, 0)
	require.Same(t, broken, err)
}

func TestFailureSaysWhatHappenedInOurWords(t *testing.T) {
	f := provider.Fail(llm.OutcomeRateLimited, errors.New("why"))
	f.Detail, f.Status, f.Code = provider.DetailNeverFits, 429, "rate_limit_exceeded"
	require.EqualError(t, f, "rate_limited (never_fits): status 429 rate_limit_exceeded: why")
	require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(errors.New("any")).Outcome)
}

func BenchmarkTimedStream(b *testing.B) {
	pieces := make([]string, 1000)
	for i := range pieces {
		pieces[i] = "token "
	}
	timed := &provider.Timed{Inner: fake.New(fake.Answer(pieces...)), Limit: limits}
	b.ReportAllocs()
	for b.Loop() {
		for range timed.Stream(b.Context(), ask) {
		}
	}
}
