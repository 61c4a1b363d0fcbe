package usage_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/usage"
)

// fleet is some workers on one server, in fake time.
type fleet struct {
	*testing.T
	js     jetstream.JetStream
	bucket *kv.Bucket
	log    bytes.Buffer
}

func bubble(t *testing.T, f func(*fleet)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		fl := &fleet{T: t}
		fl.open(srv)
		f(fl)
	})
}

// open makes the buckets, again if they are gone.
func (f *fleet) open(srv *server.Server) {
	f.Helper()
	js, err := jetstream.New(natstest.Connect(f.T, srv))
	require.NoError(f, err)
	b, err := kv.Open(f.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
	require.NoError(f, err)
	f.js, f.bucket = js, b.Usage
}

// worker runs a Usage until stop.
func (f *fleet) worker(name string) (u *usage.Usage, stop func()) {
	f.Helper()
	u, err := usage.New(usage.Config{Bucket: f.bucket, Worker: name, Log: slog.New(slog.NewTextHandler(&f.log, nil))})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	var running sync.WaitGroup
	running.Go(func() { require.NoError(f, u.Run(ctx)) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	f.Cleanup(stop)
	return u, stop
}

func (f *fleet) read(days int) []usage.Row {
	f.Helper()
	now := time.Now()
	rows, err := usage.Read(f.Context(), f.bucket, now.AddDate(0, 0, -days), now)
	require.NoError(f, err)
	return rows
}

// answered is a request that one call of a model answered.
func answered(u *usage.Usage, tenant, feature, model string, in, out int64, dollars float64) {
	req := &llm.Request{Tenant: tenant, Feature: feature}
	u.AttemptEnded(context.Background(), req, call(model, in, out, dollars))
	u.RequestEnded(context.Background(), req, chain.Ending{Response: &llm.Response{ServedBy: llm.ServedByModel, Provider: "openai", Model: model}})
}

func call(model string, in, out int64, dollars float64) *llm.Attempt {
	return &llm.Attempt{Provider: "openai", Model: model, CostUSD: dollars, Usage: &llm.Usage{InputTokens: &in, OutputTokens: &out}}
}
