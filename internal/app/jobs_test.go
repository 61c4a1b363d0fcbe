package app_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// TestAJobWaitsOutASwitch hands a request over while its feature is switched
// off, and gets the answer when it is on again.
func TestAJobWaitsOutASwitch(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), "providers: {echo: }\nfeatures: {default: {targets: [{provider: echo, model: echo}], fallback: queue, jobs: {backoff: [100ms]}}}\n")
	nc := srv.Dial()
	flags := buckets(t, nc).Flags
	_, err := flags.Put(t.Context(), kv.AllKey, []byte("off"))
	require.NoError(t, err)
	var resp *llm.Response
	require.Eventually(t, func() bool {
		resp, err = ask(t, nc, "default", "hello")
		return err == nil && resp.Job != nil
	}, patience, tick)
	require.Equal(t, llm.ServedByKillSwitch, resp.ServedBy)
	require.Equal(t, llm.FallbackQueued, resp.Fallback)

	require.NoError(t, flags.Delete(t.Context(), kv.AllKey, 0))
	c, err := client.New(nc, client.WithTimeout(patience))
	require.NoError(t, err)
	answer, err := c.Result(t.Context(), resp.Job)
	require.NoError(t, err)
	require.Equal(t, "echo: hello", answer.Content)
	require.Equal(t, resp.Job.ID, answer.ID)
	p.ended(t)
}

func TestAWorkerWithoutJobSlotsTakesNoJobs(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := joining(srv)
	env.JobSlots = 0
	p := start(t, env, echoConfig)
	nc := srv.Dial()
	c, err := client.New(nc)
	require.NoError(t, err)
	_, err = c.Submit(t.Context(), question("default", "hello"))
	require.NoError(t, err)
	_, err = ask(t, nc, "default", "hello")
	require.NoError(t, err)
	require.Equal(t, 1, queued(t, nc))
	p.ended(t)
	p = start(t, joining(srv), echoConfig)
	require.Eventually(t, func() bool { return queued(t, nc) == 0 }, patience, tick)
	p.ended(t)
}

// queued is how many jobs are in the queue.
func queued(t *testing.T, nc *nats.Conn) int {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), subjects.JobsStream)
	require.NoError(t, err)
	return int(s.CachedInfo().State.Msgs)
}
