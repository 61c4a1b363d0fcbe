package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// OpenStream makes a stream that is no bucket, if it does not exist, with as
// many replicas as the servers hold and the options allow. amend changes what
// llmbus needs in the settings of a stream that exists, and reports whether it
// did; the rest stays as an operator set it. It waits for JetStream as Open does.
func OpenStream(ctx context.Context, js jetstream.JetStream, o Options, cfg jetstream.StreamConfig, amend func(*jetstream.StreamConfig) bool) (jetstream.Stream, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	op := &opener{js: js, replicas: o.replicas()}
	cfg.Storage = o.Storage
	var s jetstream.Stream
	err := Patiently(ctx, "open stream "+cfg.Name, func(ctx context.Context) (err error) {
		s, err = op.openStream(ctx, cfg, amend)
		return err
	})
	return s, err
}

// Patiently tries something with JetStream again while it fails as it does at a
// server that starts or a cluster that elects, until ctx ends, or for 10 s if
// ctx has no deadline.
func Patiently(ctx context.Context, what string, try func(context.Context) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, openPatience)
		defer cancel()
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, openAttempt)
		err := try(attempt)
		cancel()
		switch {
		case err == nil:
			return nil
		case !transient(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-time.After(jitter(openRetry)):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

func (op *opener) openStream(ctx context.Context, cfg jetstream.StreamConfig, amend func(*jetstream.StreamConfig) bool) (jetstream.Stream, error) {
	s, err := op.js.Stream(ctx, cfg.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return op.createStream(ctx, cfg)
	case err != nil:
		return nil, err
	}
	have := s.CachedInfo().Config
	if amend(&have) {
		if _, err := op.js.UpdateStream(ctx, have); err != nil {
			return nil, err
		}
	}
	return s, op.raise(ctx, have)
}

// createStream asks for fewer replicas until the servers can hold them.
func (op *opener) createStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	for {
		cfg.Replicas = op.replicas
		s, err := op.js.CreateStream(ctx, cfg)
		if !tooManyReplicas(err) || op.replicas == 1 {
			return s, err
		}
		op.replicas--
	}
}
