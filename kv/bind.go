package kv

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoBuckets means that no worker has made the buckets yet.
var ErrNoBuckets = errors.New("the buckets of llmbus are not there; has a worker run on this NATS?")

// Bind opens the buckets as they are. It makes and changes none, for tools whose
// own settings are not those of the workers.
func Bind(ctx context.Context, js jetstream.JetStream) (*Buckets, error) {
	op := &opener{js: js}
	var b Buckets
	for _, s := range (Options{}).specs(&b) {
		bucket, err := op.bind(ctx, s)
		if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, fmt.Errorf("%w (%s)", ErrNoBuckets, s.Bucket)
		}
		if err != nil {
			return nil, fmt.Errorf("bind bucket %s: %w", s.Bucket, err)
		}
		*s.into = bucket
	}
	return &b, nil
}
