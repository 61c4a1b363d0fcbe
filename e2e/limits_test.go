package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// limit adds limits of every tenant to what workers are told.
func (s *site) limit(t *testing.T, limits string) {
	t.Helper()
	file, err := os.OpenFile(s.config, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("limits: {default: {" + limits + "}}\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// backOff has jobs of feature slow tried again soon.
func (s *site) backOff(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(s.config)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte("  slow:\n"), []byte("  slow:\n    jobs: {backoff: [700ms]}\n"), 1)
	require.NoError(t, os.WriteFile(s.config, text, 0o600))
}

// A hundred parallel callers over five processes get exactly what the limit
// allows, and the others hear which limit it is and when to come back.
func TestProcessesKeepALimitTogether(t *testing.T) {
	for limits, tc := range map[string]struct {
		want           int
		feature, model string
	}{
		"requests_per_day: 60": {60, "slow", jobModel},
		// The last request comes before the first answer, on a busy machine, too.
		"requests_per_day: 60, tokens_per_day: 1_000_000, usd_per_day: 1, concurrent: 37": {37, "long", "sim-ok-t250-g20ms"},
	} {
		t.Run(limits, func(t *testing.T) {
			s := newSite(t)
			s.limit(t, limits)
			s.start(t, 5)
			var mu sync.Mutex
			var group sync.WaitGroup
			served := 0
			for range 100 {
				group.Go(func() {
					msg, err := s.caller.Request(subjects.Complete(tc.feature), []byte(hello), time.Minute)
					mu.Lock()
					defer mu.Unlock()
					require.NoError(t, err)
					var got reply
					require.NoError(t, json.Unmarshal(msg.Data, &got))
					if got.Error == nil {
						served++
						return
					}
					require.Equal(t, llm.CodeRateLimited, got.Error.Code)
					require.Contains(t, got.Error.Message, "the tenant's limit of ")
					require.Contains(t, got.Error.Message, " is reached; come back ")
					require.Positive(t, got.Error.RetryAfterMS)
					require.Empty(t, got.Error.Attempts)
				})
			}
			group.Wait()
			require.Equal(t, tc.want, served)
			require.Equal(t, tc.want, s.sim.Calls(tc.model))
		})
	}
}

// The slots of a process that is killed with -9 come back by themselves.
func TestSlotsOfAKilledProcessComeBack(t *testing.T) {
	s := newSite(t)
	s.limit(t, "concurrent: 6")
	victim := s.start(t, 1)[0]
	hang := func() {
		require.NoError(t, s.caller.PublishRequest(subjects.Complete("silent"), s.caller.NewInbox(), []byte(hello)))
	}
	inFlight := func() int { return s.sim.Stats().InFlight }
	for range 3 {
		hang()
	}
	until(t, "the first process has slots", func() bool { return inFlight() == 3 })
	s.start(t, 1)
	for range 12 {
		hang()
	}
	until(t, "all slots are taken", func() bool { return inFlight() == 6 })
	_ = victim.stop(t, syscall.SIGKILL) // its exit code says that it was killed
	until(t, "its calls are broken off", func() bool { return inFlight() < 6 })
	require.Eventually(t, func() bool {
		hang()
		return inFlight() == 6
	}, 15*time.Second, 100*time.Millisecond, "the other process gets its slots")
	for range 20 {
		hang()
	}
	require.Never(t, func() bool { return inFlight() > 6 }, 300*time.Millisecond, 10*time.Millisecond)
}

// Jobs that meet a limit are put off and not lost.
func TestProcessJobsWaitForALimit(t *testing.T) {
	s := newSite(t)
	s.limit(t, "concurrent: 1")
	s.backOff(t)
	s.start(t, 2)
	js, err := jetstream.New(s.caller)
	require.NoError(t, err)
	results, err := s.caller.SubscribeSync(subjects.Results)
	require.NoError(t, err)
	const jobs = 4
	for range jobs {
		_, err := js.Publish(t.Context(), subjects.Job("slow"), []byte(`{"prompt":"hi"}`))
		require.NoError(t, err)
	}
	for range jobs {
		msg, err := results.NextMsg(20 * time.Second)
		require.NoError(t, err)
		var answer struct {
			ServedBy llm.ServedBy `json:"served_by"`
		}
		require.NoError(t, json.Unmarshal(msg.Data, &answer))
		require.Equal(t, llm.ServedByModel, answer.ServedBy)
	}
	require.Equal(t, jobs, s.sim.Calls(jobModel), "a job over the limit asks nobody")
}
