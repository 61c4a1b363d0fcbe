package kv_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/kv"
)

func TestListReadsWhatAFilterMatches(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		none, err := b.Usage.List(t.Context(), "a.>")
		require.NoError(t, err)
		require.Empty(t, none)
		want := map[string]string{}
		for i := range 300 { // more than one read holds
			key := fmt.Sprintf("a.%d", i)
			want[key] = fmt.Sprint(i)
			_, err := b.Usage.Put(t.Context(), key, []byte(want[key]))
			require.NoError(t, err)
		}
		_, err = b.Usage.Put(t.Context(), "b.1", []byte("other"))
		require.NoError(t, err)
		require.NoError(t, b.Usage.Delete(t.Context(), "a.7", 0))
		delete(want, "a.7")

		got := map[string]string{}
		entries, err := b.Usage.List(t.Context(), "a.>")
		require.NoError(t, err)
		for _, e := range entries {
			got[e.Key] = string(e.Value)
		}
		require.Equal(t, want, got)
	})
}
