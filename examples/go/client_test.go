package plain

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
)

// The same with the client package, which keeps the rules for readers itself,
// comes back after busy and asks another worker when one dies.

func TestClientCompletesAndStreams(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	// [client]
	c, err := client.New(nc)
	require.NoError(t, err)
	req := &llm.Request{Feature: "support", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}}
	answer, err := c.Complete(ctx, req)
	require.NoError(t, err)
	text := ""
	for frame, err := range c.Stream(ctx, req) {
		require.NoError(t, err)
		if frame.Type == llm.FrameStart {
			text = "" // this attempt replaces what an earlier one has shown
		}
		text += frame.Text
	}
	// [end]
	require.Equal(t, answer.Content, text)
}

func TestClientErrors(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	c, err := client.New(nc)
	require.NoError(t, err)
	_, err = c.Complete(ctx, &llm.Request{Feature: "limited", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}})
	require.ErrorIs(t, err, llm.ErrRateLimited)
	failed, _ := errors.AsType[*llm.Error](err)
	require.Positive(t, failed.RetryAfter())
}

func TestClientJob(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	c, err := client.New(nc)
	require.NoError(t, err)
	job, err := c.Submit(ctx, &llm.Request{Feature: "support", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}})
	require.NoError(t, err)
	answer, err := c.Result(ctx, job)
	require.NoError(t, err)
	require.NotEmpty(t, answer.Content)
}

func TestClientNoResponders(t *testing.T) {
	ctx, nc := connect(t, "NATS_EMPTY_URL")
	c, err := client.New(nc)
	require.NoError(t, err)
	_, err = c.Complete(ctx, &llm.Request{Feature: "support", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}})
	require.ErrorIs(t, err, nats.ErrNoResponders)
}
