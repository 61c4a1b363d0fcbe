package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	openPatience = 10 * time.Second // for JetStream to answer, if the caller's ctx has no deadline
	openAttempt  = 5 * time.Second
	openRetry    = 100 * time.Millisecond
)

// Buckets are all buckets of llmbus, opened.
type Buckets struct {
	Breakers *Bucket // state of circuit breakers; mirrored
	Probes   *Bucket // probe leases, each with its own TTL
	Flags    *Bucket // kill switches; mirrored
	Features *Bucket // feature policies; mirrored
	Cache    *Bucket // previous answers
	Requests *Bucket // idempotency of requests
	Jobs     *Bucket // history of jobs that were tried and are not done
	Usage    *Bucket // requests, tokens and cost of each day
	Slots    *Bucket // who holds slots of a limit on concurrent requests
}

// Open makes every bucket that does not exist and brings the settings of the
// others up to date. Several workers may do so at once. It waits for a JetStream
// that is not there yet until ctx ends, or for 10 s if ctx has no deadline. A
// bucket that cannot be brought up to date is a BucketError.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Buckets, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, openPatience)
		defer cancel()
	}
	op := &opener{js: js, replicas: o.replicas()}
	var b Buckets
	for _, spec := range o.specs(&b) {
		bucket, err := op.open(ctx, spec)
		if err != nil {
			return nil, err
		}
		*spec.into = bucket
	}
	return &b, nil
}

// opener opens one bucket after the other and remembers how many replicas the
// server could hold, so that it is found out once.
type opener struct {
	js       jetstream.JetStream
	replicas int
}

// open retries until the bucket is there, as wanted, or cannot be.
func (op *opener) open(ctx context.Context, s spec) (*Bucket, error) {
	for {
		bucket, err := op.try(ctx, s)
		if err == nil || !transient(err) {
			return bucket, err
		}
		select {
		case <-time.After(jitter(openRetry)):
		case <-ctx.Done():
			return nil, fmt.Errorf("open bucket %s: %w", s.Bucket, err)
		}
	}
}

func (op *opener) try(ctx context.Context, s spec) (*Bucket, error) {
	ctx, cancel := context.WithTimeout(ctx, openAttempt)
	defer cancel()
	stream, err := op.js.Stream(ctx, streamName(s.Bucket))
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		err = op.create(ctx, s)
	case err == nil:
		err = op.update(ctx, s, stream.CachedInfo().Config)
	}
	if err != nil {
		return nil, err
	}
	return op.bind(ctx, s)
}

func (op *opener) bind(ctx context.Context, s spec) (*Bucket, error) {
	stream, err := op.js.Stream(ctx, streamName(s.Bucket))
	if err != nil {
		return nil, err
	}
	kv, err := op.js.KeyValue(ctx, s.Bucket)
	if err != nil {
		return nil, err
	}
	return &Bucket{name: s.Bucket, kv: kv, stream: stream, conn: op.js.Conn(), api: apiPrefix(op.js.Options()), changes: s.changes}, nil
}

// create makes the bucket with as many replicas as the servers can hold. They
// are asked rather than counted: limits and placement decide too.
func (op *opener) create(ctx context.Context, s spec) error {
	for {
		s.Replicas = op.replicas
		_, err := op.js.CreateKeyValue(ctx, s.KeyValueConfig)
		if !tooManyReplicas(err) || op.replicas == 1 {
			return err
		}
		op.replicas--
	}
}

// update brings an existing bucket up to date. Replicas are raised if the
// servers can hold more and never taken away: a server may only be down.
func (op *opener) update(ctx context.Context, s spec, cfg jetstream.StreamConfig) error {
	if err := s.refuse(cfg); err != nil {
		return err
	}
	if settings := s.amend(&cfg); len(settings) > 0 {
		if _, err := op.js.UpdateStream(ctx, cfg); err != nil {
			if transient(err) {
				return err
			}
			return &BucketError{Bucket: s.Bucket, Setting: strings.Join(settings, ", "), Have: "another value", Want: "llmbus's own",
				Remedy: "delete the bucket, or change it with the nats CLI", Err: err}
		}
	}
	return op.raise(ctx, cfg)
}

// raise gives a stream more replicas, if the servers can hold them.
func (op *opener) raise(ctx context.Context, cfg jetstream.StreamConfig) error {
	for cfg.Replicas < op.replicas {
		raised := cfg
		raised.Replicas = op.replicas
		_, err := op.js.UpdateStream(ctx, raised)
		if !tooManyReplicas(err) {
			return err
		}
		op.replicas--
	}
	return nil
}

// transient reports whether the same call may succeed a little later.
func transient(err error) bool {
	for _, target := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, context.DeadlineExceeded,
		jetstream.ErrJetStreamNotEnabled, jetstream.ErrNoStreamResponse,
		jetstream.ErrStreamNameAlreadyInUse, jetstream.ErrBucketExists, // made by another worker meanwhile
		jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound, // made, and not known everywhere yet
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.Code == 503
}

// tooManyReplicas reports whether fewer replicas might do.
func tooManyReplicas(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return false
	}
	switch api.ErrorCode {
	case 10074, // replicas > 1 not supported in non-clustered mode
		10005, // no suitable peers for placement
		10023, // insufficient resources
		10120: // no tier of the account for that many replicas
		return true
	}
	return false
}

func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
