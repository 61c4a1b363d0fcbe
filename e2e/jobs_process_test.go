package e2e

import (
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/subjects"
)

var processJobs = flag.Int("jobs", 24, "how many jobs TestProcessJobsSurviveKills puts through processes")

// jobModel is the model behind feature slow, of whose calls each takes 1.2 s.
const jobModel = "sim-ok-t60-g20ms"

// TestProcessJobsSurviveKills kills processes with -9 whenever the provider sees
// calls, or the first answers come, which is just before their acknowledgement.
func TestProcessJobsSurviveKills(t *testing.T) {
	s := newSite(t)
	env := []string{"LLMBUS_JOB_ACK_WAIT=1s", "LLMBUS_JOB_SLOTS=8"}
	workers := s.start(t, 2, env...)
	results, err := s.caller.SubscribeSync(subjects.Results)
	require.NoError(t, err)
	js, err := jetstream.New(s.caller)
	require.NoError(t, err)
	for range *processJobs {
		_, err := js.Publish(t.Context(), subjects.Job("slow"), []byte(`{"prompt":"hi"}`))
		require.NoError(t, err)
	}
	killed := 0
	kills := max(2, *processJobs/50)
	for k := range kills {
		until(t, "the provider is asked", func() bool { return s.sim.Stats().InFlight > 0 })
		if k%2 == 1 {
			_, err := results.NextMsgWithContext(t.Context())
			require.NoError(t, err)
		}
		at := rand.N(len(workers))
		_ = workers[at].stop(t, syscall.SIGKILL) // its exit code says that it was killed
		killed += 8
		workers[at] = s.start(t, 1, env...)[0]
	}
	left := func(name string) jetstream.StreamState {
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		return stream.CachedInfo().State
	}
	require.Eventually(t, func() bool { return left(subjects.JobsStream).Msgs == 0 }, 20*time.Minute, 50*time.Millisecond, "jobs are left")
	require.Equal(t, uint64(*processJobs), left(subjects.ResultsStream).Msgs)
	require.Equal(t, uint64(*processJobs), left(subjects.ResultsStream).LastSeq, "none twice")
	require.Zero(t, left(subjects.DeadStream).LastSeq)
	calls := s.sim.Calls(jobModel)
	require.LessOrEqual(t, calls, *processJobs+killed, "a further call for what the killed had in hand, at most")
	t.Logf("%d jobs, %d kills: %d calls", *processJobs, kills, calls)
}

// TestProcessGivesJobsBackOnSIGTERM: the time-out that finds dead workers is too
// long to be of any help here.
func TestProcessGivesJobsBackOnSIGTERM(t *testing.T) {
	s := newSite(t)
	env := []string{"LLMBUS_JOB_ACK_WAIT=1h"}
	first := s.start(t, 1, env...)[0]
	inbox := s.caller.NewInbox()
	replies, err := s.caller.SubscribeSync(inbox)
	require.NoError(t, err)
	const jobs = 4
	for range jobs {
		header := nats.Header{subjects.HeaderReplyTo: {inbox}}
		require.NoError(t, s.caller.PublishMsg(&nats.Msg{Subject: subjects.Job("slow"), Header: header, Data: []byte(`{"prompt":"hi"}`)}))
	}
	until(t, "all jobs are in hand", func() bool { return s.sim.Stats().InFlight == jobs })
	s.start(t, 1, env...)
	began := time.Now()
	require.NoError(t, first.stop(t, syscall.SIGTERM))
	for range jobs {
		reply, err := replies.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		require.Contains(t, string(reply.Data), `"served_by":"model"`)
	}
	require.Less(t, time.Since(began), 10*time.Second)
}
