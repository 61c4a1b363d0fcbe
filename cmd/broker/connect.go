package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// toolPatience bounds what a tool waits for, apart from answers of models.
const toolPatience = 10 * time.Second

// connect reaches the NATS that the environment names, or the embedded server
// of a worker on this machine.
func connect() (*nats.Conn, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	options, err := env.Options("llmbus tool")
	if err != nil {
		return nil, configError{err}
	}
	nc, err := nats.Connect(env.URL(), options...)
	if err != nil {
		remedy := fmt.Sprintf("start a worker with %q, or set LLMBUS_NATS_URL", command())
		if errors.Is(err, nats.ErrAuthorization) {
			remedy = "check the login: LLMBUS_NATS_CREDS, _NKEY, _TOKEN, or _USER with _PASSWORD"
		}
		return nil, natsError{fmt.Errorf("connect to NATS at %s: %w; %s", env.URL(), err, remedy)}
	}
	return nc, nil
}

// withBuckets calls f with the buckets that the workers made.
func withBuckets(ctx context.Context, f func(context.Context, *kv.Buckets) error) error {
	return withJetStream(ctx, func(ctx context.Context, _ jetstream.JetStream, b *kv.Buckets) error { return f(ctx, b) })
}

// withJetStream is withBuckets for who reads streams that are no buckets, too.
func withJetStream(ctx context.Context, f func(context.Context, jetstream.JetStream, *kv.Buckets) error) error {
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	buckets, err := kv.Bind(ctx, js)
	if err != nil {
		return err
	}
	return f(ctx, js, buckets)
}

// someWorker fails fast where nobody would answer.
func someWorker(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	_, err := nc.RequestWithContext(ctx, subjects.Status, nil)
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("no worker is connected to %s; start one with %q", nc.ConnectedUrlRedacted(), command())
	}
	return err
}
