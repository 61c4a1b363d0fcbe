package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is one JetStream bucket with writes that name the revision they
// replace. It is safe for concurrent use.
type Bucket struct {
	name    string
	kv      jetstream.KeyValue
	stream  jetstream.Stream
	conn    *nats.Conn
	api     string // prefix of the JetStream API, with its last dot
	changes string // subject prefix of republished changes; empty: none
}

// Name is the bucket's name.
func (b *Bucket) Name() string { return b.name }

// Get reads one key from the server.
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	e, err := b.kv.Get(ctx, key)
	if err != nil {
		return Entry{}, b.failed("get", key, err)
	}
	return Entry{Key: key, Value: e.Value(), Revision: e.Revision(), Created: e.Created(), Received: time.Now()}, nil
}

// Put writes a key whatever it holds.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	revision, err = b.kv.Put(ctx, key, value)
	return revision, b.failed("put", key, err)
}

// Create writes a key that must not exist, for ever or with a ttl of whole
// seconds, at least 1. A later Update of the key drops the ttl.
func (b *Bucket) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (revision uint64, err error) {
	var opts []jetstream.KVCreateOpt
	if ttl > 0 {
		opts = append(opts, jetstream.KeyTTL(ttl))
	}
	revision, err = b.kv.Create(ctx, key, value, opts...)
	return revision, b.failed("create", key, err)
}

// Update writes a key that must still have that revision; 0 means that it must
// not exist.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return b.Create(ctx, key, value, 0)
	}
	next, err := b.kv.Update(ctx, key, value, revision)
	return next, b.failed("update", key, err)
}

// Delete removes a key that must still have that revision; 0 means any.
func (b *Bucket) Delete(ctx context.Context, key string, revision uint64) error {
	var opts []jetstream.KVDeleteOpt
	if revision != 0 {
		opts = append(opts, jetstream.LastRevision(revision))
	}
	return b.failed("delete", key, b.kv.Delete(ctx, key, opts...))
}

// ServerTime is the time of the server that leads the bucket, if it still does.
func (b *Bucket) ServerTime(ctx context.Context) (time.Time, error) {
	info, err := b.stream.Info(ctx)
	if err == nil {
		err = authoritative(info)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("ask %s for the time: %w", b.name, err)
	}
	return info.TimeStamp, nil
}

// failed says what was being done and translates what callers decide on.
func (b *Bucket) failed(what, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound): // also matches a deleted key
		err = ErrNotFound
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch), errors.Is(err, jetstream.ErrKeyExists):
		err = ErrConflict
	case errors.Is(err, nats.ErrMaxPayload):
		err = ErrTooLarge
	}
	return fmt.Errorf("%s %s in %s: %w", what, key, b.name, err)
}
