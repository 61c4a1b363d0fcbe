package limits_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/subjects"
)

// The server that leads the counters dies under load. Requests go on, the
// fleet passes no more than it may without JetStream, and it comes near the limit
// in the end.
func TestTheLeaderOfTheCountersDies(t *testing.T) {
	const limit = 800
	m := natstest.NewMesh(t, 3)
	f := &fleet{}
	defer f.end()
	for i := range 3 {
		f.add(t, m.Dial(i), every(limits.Limit{Kind: limits.Requests, Window: limits.Hour, Amount: limit}))
	}
	acquainted := func(w *worker) bool { return w.Workers() == 3 }
	require.Eventually(t, func() bool { return f.every(acquainted) }, 10*time.Second, 10*millisecond)
	var admitted atomic.Int64
	ask := func(callers int) {
		grants, _ := f.parallel(t, callers, chain.Use{})
		admitted.Add(int64(len(grants)))
	}
	ask(200)
	require.EqualValues(t, 200, admitted.Load())
	m.Kill(m.Leader(subjects.LimitStream("hour")))
	for admitted.Load() < 400 {
		ask(20)
	}
	back := func(w *worker) bool { return !w.Limiter.Degraded() }
	require.Eventually(t, func() bool { return f.every(back) }, 20*time.Second, 10*millisecond)
	ask(limit)
	t.Logf("%d of %d admitted", admitted.Load(), limit)
	require.LessOrEqual(t, admitted.Load(), int64(limit))
	require.GreaterOrEqual(t, admitted.Load(), int64(limit)*9/10)
}
