package client_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// TestJob plays the workers: it stores what they would store.
func TestJob(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		c, err := client.New(nc)
		require.NoError(t, err)
		req := &llm.Request{Feature: "f", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}
		_, err = c.Submit(t.Context(), req)
		require.ErrorIs(t, err, llm.ErrUnavailable, "there is no stream")

		for name, subject := range map[string]string{subjects.JobsStream: subjects.Jobs, subjects.ResultsStream: subjects.Results, subjects.DeadStream: subjects.Dead} {
			_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.MemoryStorage, AllowDirect: true})
			require.NoError(t, err)
		}
		answered, err := c.Submit(t.Context(), req)
		require.NoError(t, err)
		req.ID = "mine"
		for range 2 {
			given, err := c.Submit(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, &llm.Job{ID: "mine", Result: "llm.results.mine"}, given)
		}
		queue, err := js.Stream(t.Context(), subjects.JobsStream)
		require.NoError(t, err)
		require.Equal(t, uint64(2), queue.CachedInfo().State.Msgs)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = c.Result(ctx, answered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		data, err := json.Marshal(&llm.Response{Content: "ok", ServedBy: llm.ServedByModel})
		require.NoError(t, err)
		time.AfterFunc(time.Hour, func() { _ = nc.PublishMsg(&nats.Msg{Subject: answered.Result, Data: data}) })
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		for range 2 { // as it comes, and as it is stored
			resp, err := c.Result(ctx, answered)
			require.NoError(t, err)
			require.Equal(t, "ok", resp.Content)
		}

		_, err = js.Publish(t.Context(), subjects.DeadLetter("f", "", "mine"), []byte(`{"id":"mine","error":{"code":"deadline","message":"m"},"attempts":[{"provider":"p"}]}`))
		require.NoError(t, err)
		_, err = c.Result(t.Context(), &llm.Job{ID: "mine", Result: "llm.results.mine"})
		require.ErrorIs(t, err, llm.ErrDeadline)
		require.Len(t, err.(*llm.Error).Attempts, 1)
	})
}
