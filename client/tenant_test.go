package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// TestAClientOfATenant asks, streams and cancels with the tenant in every
// subject; signs of life come too.
func TestAClientOfATenant(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Answer("whole"), fake.Answer("in pieces"), fake.Hangs())
		r := newRig(t, client.WithTenant("acme"))
		r.work(t, model{p}, func(c *bus.Config) { c.Tenants = true })
		resp, err := r.client.Complete(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, "whole", resp.Content)
		frames, err := collect(r.client.Stream(t.Context(), ask()))
		require.NoError(t, err)
		require.Equal(t, "in pieces", text(frames))
		for _, call := range p.Calls() {
			require.Equal(t, "acme", call.Request.Tenant)
		}

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = r.client.Complete(ctx, ask())
		require.ErrorIs(t, err, context.Canceled)
		natstest.Advance(time.Millisecond)
		require.Zero(t, p.Running(), "the cancel reached the worker")
	})
}

// TestAJobOfATenant plays the worker.
func TestAJobOfATenant(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		for name, subject := range map[string]string{subjects.JobsStream: subjects.Jobs, subjects.ResultsStream: subjects.Results, subjects.DeadStream: subjects.Dead} {
			_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.MemoryStorage, AllowDirect: true})
			require.NoError(t, err)
		}
		c, err := client.New(nc, client.WithTenant("acme"))
		require.NoError(t, err)
		req := ask()
		req.ID = "1"
		job, err := c.Submit(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, &llm.Job{ID: "1", Result: "llm.results.acme.1"}, job)
		for _, end := range []*nats.Msg{ // the first is another tenant's
			{Subject: subjects.Result("globex", "1"), Data: []byte(`{"id":"1","content":"no","served_by":"model"}`)},
			{Subject: subjects.Result("acme", "1"), Data: []byte(`{"id":"1","content":"yes","served_by":"model"}`)},
		} {
			_, err := js.PublishMsg(t.Context(), end)
			require.NoError(t, err)
		}
		resp, err := c.Result(t.Context(), &llm.Job{ID: "1"})
		require.NoError(t, err)
		require.Equal(t, "yes", resp.Content)
	})
}
