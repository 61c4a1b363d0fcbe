package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func TestWritesNameTheRevisionTheyReplace(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		compareAndSwap(t, b.Breakers)
	})
}

// compareAndSwap holds for a single server as for a cluster.
func compareAndSwap(t *testing.T, b *kv.Bucket) {
	t.Helper()
	ctx := t.Context()
	first, err := b.Update(ctx, "k", []byte("1"), 0)
	require.NoError(t, err)
	_, err = b.Update(ctx, "k", []byte("x"), 0)
	require.ErrorIs(t, err, kv.ErrConflict, "exists")
	second, err := b.Update(ctx, "k", []byte("2"), first)
	require.NoError(t, err)
	_, err = b.Update(ctx, "k", []byte("x"), first)
	require.ErrorIs(t, err, kv.ErrConflict)
	require.ErrorIs(t, b.Delete(ctx, "k", first), kv.ErrConflict)
	e, err := b.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "2", string(e.Value))
	require.Equal(t, second, e.Revision)
	require.NoError(t, b.Delete(ctx, "k", second))
	_, err = b.Get(ctx, "k")
	require.ErrorIs(t, err, kv.ErrNotFound)
	_, err = b.Update(ctx, "k", []byte("3"), 0)
	require.NoError(t, err, "a deleted key is free")
}

func TestLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		began := time.Now()
		_, err := b.Probes.Create(t.Context(), "openai.gpt", []byte("w1"), 5*time.Second)
		require.NoError(t, err)
		for err = kv.ErrConflict; err != nil; natstest.Advance(100 * time.Millisecond) {
			require.ErrorIs(t, err, kv.ErrConflict)
			_, err = b.Probes.Create(t.Context(), "openai.gpt", []byte("w2"), 5*time.Second)
		}
		require.InDelta(t, 5*time.Second, time.Since(began), float64(1500*time.Millisecond))
	})
}

func TestCacheKeepsTenantsApart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		c, ctx := kv.NewCache(b.Cache), t.Context()
		require.NoError(t, c.Put(ctx, "acme.eu", "support", "k*>", []byte("a")))
		c.Keep("", "support", "k*>", []byte("b"))
		answer, err := c.Find(ctx, "acme.eu", "support", "k*>")
		require.NoError(t, err)
		require.Equal(t, "a", string(answer))
		answer, err = c.Find(ctx, "", "support", "k*>")
		require.NoError(t, err)
		require.Equal(t, "b", string(answer))
		_, err = c.Find(ctx, "other", "support", "k*>")
		require.ErrorIs(t, err, kv.ErrNotFound)

		limit := int(js.Conn().MaxPayload())
		require.ErrorIs(t, c.Put(ctx, "", "f", "big", make([]byte, limit)), kv.ErrTooLarge)
		require.NoError(t, c.Put(ctx, "", "f", "big", make([]byte, limit-2048)))

		natstest.Advance(24*time.Hour + time.Minute)
		_, err = c.Find(ctx, "acme.eu", "support", "k*>")
		require.ErrorIs(t, err, kv.ErrNotFound)
	})
}
