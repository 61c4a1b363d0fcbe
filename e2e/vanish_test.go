package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/llm"
)

// asker is a Go client that takes a second of silence for a dead worker.
func (s *site) asker(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(s.nats.Dial(), client.WithSilence(time.Second), client.WithTimeout(15*time.Second))
	require.NoError(t, err)
	return c
}

func toSlow() *llm.Request {
	return &llm.Request{Feature: "slow", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}}
}

// hang makes the next call of the slow model hang.
func (s *site) hang(t *testing.T) {
	t.Helper()
	require.NoError(t, s.sim.Control(sim.Rule{Fault: "hang", Times: 1, Model: slowModel}))
}

const slowModel = "sim-ok-t60-g20ms"

// killed starts two workers and kills the one that holds the first request,
// when the provider has been called.
func (s *site) killed(t *testing.T, workers []*process) {
	until(t, "the provider is called", func() bool { return s.sim.Calls(slowModel) == 1 })
	require.Error(t, s.busy(t, workers).stop(t, syscall.SIGKILL))
}

func TestAKilledWorkersRequestsGoToAnother(t *testing.T) {
	type answer struct {
		text string
		err  error
	}
	for name, ask := range map[string]func(*testing.T, *client.Client, chan<- answer){
		"whole": func(t *testing.T, c *client.Client, to chan<- answer) {
			resp, err := c.Complete(t.Context(), toSlow())
			if err != nil {
				to <- answer{err: err}
				return
			}
			to <- answer{text: resp.Content}
		},
		"streamed": func(t *testing.T, c *client.Client, to chan<- answer) {
			var a answer
			for f, err := range c.Stream(t.Context(), toSlow()) {
				a.text, a.err = a.text+f.Text, err
			}
			to <- a
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			workers := s.start(t, 2)
			s.hang(t)
			to := make(chan answer, 1)
			go ask(t, s.asker(t), to)
			s.killed(t, workers)
			killed := time.Now()
			until(t, "the other worker calls the provider", func() bool { return s.sim.Calls(slowModel) == 2 })
			took := time.Since(killed)
			t.Logf("called again %s after the kill", took.Round(time.Millisecond))
			got := receive(t, to)
			require.NoError(t, got.err)
			require.NotEmpty(t, got.text)
			require.Equal(t, 2, s.sim.Calls(slowModel), "one for each worker")
			require.Less(t, took, 5*time.Second)
		})
	}
}

func TestAKilledWorkersBegunAnswerIsInterrupted(t *testing.T) {
	s := newSite(t)
	workers := s.start(t, 2)
	var text strings.Builder
	var err error
	for f, e := range s.asker(t).Stream(t.Context(), toSlow()) {
		if text.Len() == 0 && f.Text != "" {
			require.Error(t, s.busy(t, workers).stop(t, syscall.SIGKILL))
		}
		text.WriteString(f.Text)
		err = e
	}
	require.ErrorIs(t, err, llm.ErrInterrupted)
	require.NotEmpty(t, text.String(), "the part is kept")
	require.Equal(t, 1, s.sim.Calls(slowModel))
}

// TestAReaderComesBackToRealWorkers cuts a reader off by a restart of its
// connection and has another process serve it the rest.
func TestAReaderComesBackToRealWorkers(t *testing.T) {
	s := newSite(t)
	s.start(t, 2)
	nc := s.nats.Dial()
	c, err := client.New(nc)
	require.NoError(t, err)
	req := toSlow()
	req.ID, req.Resumable = "come-back-1", true
	var frames []llm.Frame
	cuts := 0
	for f, err := range c.Stream(t.Context(), req) {
		require.NoError(t, err)
		if frames = append(frames, f); len(frames)%20 == 0 {
			cuts++
			require.NoError(t, nc.ForceReconnect())
		}
	}
	var text, again strings.Builder
	for _, f := range frames {
		text.WriteString(f.Text)
	}
	require.Equal(t, text.String(), frames[len(frames)-1].Response.Content)
	require.GreaterOrEqual(t, cuts, 2)
	for f, err := range s.asker(t).Resume(t.Context(), req.ID, 1) {
		require.NoError(t, err)
		again.WriteString(f.Text)
	}
	require.Equal(t, text.String(), again.String())
	require.Equal(t, 1, s.sim.Calls(slowModel))
}
