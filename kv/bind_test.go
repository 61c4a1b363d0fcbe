package kv_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func TestBindMakesNothing(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		js, err := jetstream.New(natstest.Connect(t, natstest.Server(t)))
		require.NoError(t, err)
		_, err = kv.Bind(t.Context(), js)
		require.ErrorIs(t, err, kv.ErrNoBuckets)
		_, err = js.KeyValue(t.Context(), kv.FlagsBucket)
		require.ErrorIs(t, err, jetstream.ErrBucketNotFound)

		_, err = kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		bound, err := kv.Bind(t.Context(), js)
		require.NoError(t, err)
		_, err = bound.Flags.Put(t.Context(), kv.AllKey, []byte("off"))
		require.NoError(t, err)
	})
}
