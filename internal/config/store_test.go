package config_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func features(t *testing.T) *kv.Bucket {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, natstest.Server(t)))
	require.NoError(t, err)
	buckets, err := kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	return buckets.Features
}

func load(t *testing.T, bucket *kv.Bucket) config.Parts {
	t.Helper()
	parts, err := config.Load(t.Context(), bucket)
	require.NoError(t, err)
	return parts
}

func TestPushWritesWhatDiffers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		bucket := features(t)
		require.True(t, load(t, bucket).Empty())
		first := config.Parts{"provider.echo": "{}\n", "feature.a": overEcho, "feature.b": overEcho}
		changed, err := config.Push(t.Context(), bucket, load(t, bucket), first)
		require.NoError(t, err)
		require.Equal(t, []string{"provider.echo", "feature.a", "feature.b"}, changed, "what others need comes first")
		require.Equal(t, first, load(t, bucket))

		changed, err = config.Push(t.Context(), bucket, load(t, bucket), first)
		require.NoError(t, err)
		require.Empty(t, changed)

		second := config.Parts{"provider.two": "kind: echo\n", "feature.a": "targets: [{provider: two, model: m}]"}
		changed, err = config.Push(t.Context(), bucket, load(t, bucket), second)
		require.NoError(t, err)
		require.Equal(t, []string{"provider.two", "feature.a", "feature.b", "provider.echo"}, changed, "and goes last")
		require.Equal(t, second, load(t, bucket))
	})
}

func TestFileIsAppliedOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		bucket := features(t)
		file := []byte(echo)
		_, parts, err := config.Parse("f.yaml", file)
		require.NoError(t, err)
		apply := func(file []byte, parts config.Parts) []string {
			changed, err := config.PushFile(t.Context(), bucket, load(t, bucket), parts, file)
			require.NoError(t, err)
			return changed
		}
		require.Equal(t, []string{"provider.echo", "provider.two", "feature.default"}, apply(file, parts))

		_, err = bucket.Put(t.Context(), "feature.pushed", []byte(overEcho))
		require.NoError(t, err)
		require.Empty(t, apply(file, parts), "a restart with the same file leaves what was pushed")
		require.Contains(t, load(t, bucket), "feature.pushed")

		require.Equal(t, []string{"feature.pushed"}, apply(append(file, '\n'), parts), "another file is applied")
		require.NotContains(t, load(t, bucket), "feature.pushed")
	})
}
