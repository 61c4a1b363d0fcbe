package app_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
)

// resume asks for a resumable stream and then reads it again, within a time.
func resume(t *testing.T, c *client.Client, within time.Duration) (first *llm.Response, again error) {
	t.Helper()
	req := question("default", "hello")
	req.ID, req.Resumable = "r1", true
	for f, err := range c.Stream(t.Context(), req) {
		require.NoError(t, err)
		first = f.Response
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for _, err := range c.Resume(ctx, "r1", 1) {
		again = err
	}
	return first, again
}

func TestFramesAreKept(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), echoConfig)
	c, err := client.New(srv.Dial(), client.WithTimeout(patience))
	require.NoError(t, err)
	first, again := resume(t, c, patience)
	require.NoError(t, again)
	require.Equal(t, "echo: hello", first.Content)
	require.Empty(t, first.Warnings)
	p.ended(t)
}

// A server without memory for frames is no reason not to answer.
func TestWithoutRoomFramesAreNotKept(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) { o.JetStreamMaxMemory = 1 << 20 })
	p := start(t, joining(srv), echoConfig)
	c, err := client.New(srv.Dial(), client.WithTimeout(patience))
	require.NoError(t, err)
	first, again := resume(t, c, time.Second)
	require.Error(t, again, "nobody serves readers that come back: unavailable, or the reader's own time is up first")
	require.Equal(t, "echo: hello", first.Content)
	require.Equal(t, []string{"resumable was ignored: this fleet keeps no frames"}, first.Warnings)
	require.Contains(t, p.log.String(), "frames are not kept")
	p.ended(t)
}
