package kv

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/subjects"
)

// Cache keeps previous answers, apart for each tenant: the tenant is the first
// token of the key, so that permissions can be given by tenant. An answer is
// kept for the TTL of the bucket. It is safe for concurrent use.
type Cache struct{ bucket *Bucket }

// NewCache makes a Cache over the cache bucket.
func NewCache(b *Bucket) *Cache { return &Cache{b} }

// Put stores an answer and waits until the server has it. One over the server's
// max_payload is ErrTooLarge.
func (c *Cache) Put(ctx context.Context, tenant, feature, key string, answer []byte) error {
	if err := c.fits(answer); err != nil {
		return err
	}
	_, err := c.bucket.Put(ctx, cacheKey(tenant, feature, key), answer)
	return err
}

// Keep stores an answer without waiting for the server. One that does not fit
// or cannot be sent is not kept: a cache may forget.
func (c *Cache) Keep(tenant, feature, key string, answer []byte) {
	if c.fits(answer) == nil {
		_ = c.bucket.send(cacheKey(tenant, feature, key), answer)
	}
}

// Find returns an answer that is still kept, or ErrNotFound.
func (c *Cache) Find(ctx context.Context, tenant, feature, key string) ([]byte, error) {
	e, err := c.bucket.Get(ctx, cacheKey(tenant, feature, key))
	return e.Value, err
}

// overhead is room for the headers of one message.
const overhead = 1 << 10

func (c *Cache) fits(answer []byte) error {
	if limit := c.bucket.conn.MaxPayload() - overhead; int64(len(answer)) > limit {
		return fmt.Errorf("cache an answer of %d bytes, limit %d: %w", len(answer), limit, ErrTooLarge)
	}
	return nil
}

// send writes a key without waiting for the answer.
func (b *Bucket) send(key string, value []byte) error {
	subject := b.subject(key)
	if b.api != jetstream.DefaultAPIPrefix {
		subject = b.api + subject
	}
	return b.conn.Publish(subject, value)
}

func cacheKey(tenant, feature, key string) string {
	return strings.Join([]string{subjects.Escape(tenant), subjects.Escape(feature), subjects.Escape(key)}, ".")
}
