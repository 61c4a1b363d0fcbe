package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/once"
)

// The leader of the records dies, and with it the connection of the worker that
// makes a third of the calls. Callers ask again until they have an answer, and
// no model is asked again.
func TestClusterMakesNoCallTwiceWhenTheLeaderDies(t *testing.T) {
	const cluster = 30 // keys
	model := wordyModel()
	p, _ := keyedPlan(model)
	log, count := new(lockedBuffer), p.once
	p.once = func(c *once.Config) {
		count(c)
		c.Log = slog.New(slog.NewTextHandler(log, nil)).With("worker", c.Worker)
	}
	m := startMeshFleet(t, p)
	defer m.halt()
	m.Lead(m.caller, "KV_"+kv.RequestsBucket, 2)
	var all sync.WaitGroup
	got := &outcomes{byID: map[string][]reply{}}
	for n := range 3 * cluster {
		all.Go(func() {
			key := fmt.Sprint("key-", n%cluster)
			r, err := m.insist(t, key, n%2 == 0)
			got.add(key, r, err)
		})
	}
	until(t, "all calls are under way", func() bool { return model.Count() == cluster })
	m.Kill(2)
	all.Wait()
	require.Zero(t, got.lost)
	require.Equal(t, cluster, model.Count(), "%s", log)
	for key, replies := range got.byID {
		require.Len(t, replies, 3)
		for _, r := range replies {
			require.Equal(t, replies[0].Content, r.Content, key)
		}
	}
}

// insist asks again, as a patient caller does, while it has no answer.
func (m *meshFleet) insist(t *testing.T, key string, streamed bool) (reply, error) {
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		r, err := askKeyed(ctx, m.caller, "f", key, streamed)
		cancel()
		if err == nil {
			return r, nil
		}
		if e, ok := errors.AsType[*llm.Error](err); ok && e.Code == llm.CodeInvalidRequest {
			return r, err
		}
	}
	return reply{}, context.DeadlineExceeded
}
