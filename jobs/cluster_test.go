package jobs_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/subjects"
)

const (
	clusterJobs = 300
	clusterWait = 30 * time.Second
)

// TestALeaderDiesInTheMiddle kills the server that leads the queue and the
// answers while jobs are worked on.
func TestALeaderDiesInTheMiddle(t *testing.T) {
	mesh := natstest.NewMesh(t, 3)
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	r := &rig{nc: mesh.Dial(0, quiet), asked: &asked{model: takes(20 * time.Millisecond), calls: map[string]int{}}}
	r.options.Storage, r.options.AckWait = jetstream.FileStorage, time.Second
	r.js, _, r.streams = open(t, r.nc, r.options)
	for i := range 3 {
		nc := mesh.Dial(i, quiet)
		_, _, s := open(t, nc, r.options)
		run(t, nc, s, r.asked, func(c *jobs.Config) { c.Slots = 4 })
	}
	leader := mesh.Leader(jobs.QueueStream)
	require.GreaterOrEqual(t, leader, 0)
	mesh.Lead(r.nc, jobs.ResultsStream, leader)
	for i := range clusterJobs {
		r.store(t, strconv.Itoa(i))
		if i == clusterJobs/2 {
			mesh.Kill(leader)
		}
	}
	require.Eventually(t, func() bool {
		s, err := r.js.Stream(t.Context(), jobs.QueueStream)
		return err == nil && s.CachedInfo().State.Msgs == 0
	}, clusterWait, 20*time.Millisecond, "jobs are left")
	results := state(t, r.js, jobs.ResultsStream)
	require.Equal(t, uint64(clusterJobs), results.Msgs)
	require.Equal(t, uint64(clusterJobs), results.LastSeq, "none twice")
	require.Zero(t, state(t, r.js, jobs.DeadStream).LastSeq)
	further := 0
	for i := range clusterJobs {
		n := r.asked.count(strconv.Itoa(i))
		require.Positive(t, n)
		further += n - 1
	}
	t.Logf("%d jobs, the leader killed: %d further calls", clusterJobs, further)
	require.LessOrEqual(t, further, 3*4, "no more than were in hand")
}

// store publishes as a careful publisher does: again, until it is acknowledged.
func (r *rig) store(t *testing.T, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m := &nats.Msg{Subject: subjects.Job("f"), Data: []byte(`{"prompt":"hi"}`)}
		_, err := r.js.PublishMsg(ctx, m, jetstream.WithMsgID(id))
		return err == nil
	}, clusterWait, 10*time.Millisecond)
}
