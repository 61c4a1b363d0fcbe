package chain_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// queue remembers what was handed over to it.
type queue struct {
	err   error
	slow  time.Duration
	taken []*llm.Request
}

func (q *queue) Enqueue(ctx context.Context, req *llm.Request) (*llm.Job, error) {
	select {
	case <-time.After(q.slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if q.err != nil {
		return nil, q.err
	}
	q.taken = append(q.taken, req)
	return &llm.Job{ID: "j", Result: "llm.results.j"}, nil
}

func queued(t *testing.T, q *queue, tune func(*chain.Feature), fakes ...*fake.Provider) *rig {
	t.Helper()
	r := newRig(t, tune, fakes...)
	r.Router = chain.NewRouter(chain.Config{Switches: r.switches, Queue: q})
	r.Load([]chain.Feature{r.feature})
	return r
}

func fallsBackToAJob(f *chain.Feature) {
	f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackQueued, llm.FallbackStatic}, "later"
}

func TestARequestIsHandedOverToAJob(t *testing.T) {
	for name, do := range both {
		t.Run(name, func(t *testing.T) {
			q := &queue{}
			r := queued(t, q, fallsBackToAJob, fake.New(fake.FailsWith(llm.OutcomeUnavailable)))
			o := do(t.Context(), r, ask())
			require.Nil(t, o.err)
			require.Equal(t, &llm.Job{ID: "j", Result: "llm.results.j"}, o.resp.Job)
			require.Equal(t, llm.FallbackQueued, o.resp.Fallback)
			require.Equal(t, llm.ServedByFallback, o.resp.ServedBy)
			require.Len(t, o.resp.Attempts, 1)
			require.Empty(t, o.text())
			require.Len(t, q.taken, 1)

			r.switches.set(t, map[string]string{"all": "off"})
			o = do(t.Context(), r, ask())
			require.Equal(t, llm.ServedByKillSwitch, o.resp.ServedBy)
			require.NotNil(t, o.resp.Job)

			q.err = errors.New("no stream")
			o = do(t.Context(), r, ask())
			require.Equal(t, llm.FallbackStatic, o.resp.Fallback, "what comes next")
		})
	}
}

// TestALateHandOverIsQuick shows that the caller has the id before the bus would
// answer without it.
func TestALateHandOverIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for slow, mode := range map[time.Duration]llm.FallbackMode{100 * time.Millisecond: llm.FallbackQueued, time.Second: llm.FallbackStatic} {
			r := queued(t, &queue{slow: slow}, fallsBackToAJob, fake.New(fake.Hangs()))
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, llm.ErrDeadline)
			defer cancel()
			o := complete(ctx, r, ask())
			require.Equal(t, mode, o.resp.Fallback)
			require.LessOrEqual(t, o.took, 1200*time.Millisecond)
		}
	})
}

func TestAJobTakesOverABrokenStream(t *testing.T) {
	broken := func() *fake.Provider {
		return fake.New(fake.Step{Pieces: []string{"a", "b"}, Truncate: true})
	}
	for name, q := range map[string]*queue{"queue": {}, "queue out of reach": {err: errors.New("no stream")}} {
		t.Run(name, func(t *testing.T) {
			r := queued(t, q, func(f *chain.Feature) { f.OnInterrupt = chain.InterruptQueue }, broken(), fake.New())
			o := stream(t.Context(), r, ask())
			require.Equal(t, llm.CodeInterrupted, o.err.Code)
			require.Equal(t, "ab", o.text())
			require.Equal(t, q.err == nil, o.err.Job != nil)
			require.Equal(t, map[string]int{"a": 1, "b": 0}, r.counts())
		})
	}
}

// TestAJobGetsNoSubstitute: a later try may make an answer.
func TestAJobGetsNoSubstitute(t *testing.T) {
	q := &queue{}
	r := queued(t, q, fallsBackToAJob, fake.New(fake.FailsWith(llm.OutcomeUnavailable)))
	req := ask()
	req.Job = true
	o := complete(t.Context(), r, req)
	require.Equal(t, llm.CodeUnavailable, o.err.Code)
	require.Empty(t, q.taken)
}

func TestATryOfAJobHasATimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := queued(t, &queue{}, func(f *chain.Feature) { f.Jobs.Timeout = time.Minute }, fake.New(fake.Hangs()))
		req := ask()
		require.Equal(t, 10*time.Second, complete(t.Context(), r, req).took)
		req.Job = true
		require.Equal(t, time.Minute, complete(t.Context(), r, req).took)
	})
}
