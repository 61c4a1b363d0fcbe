package natstest_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

// Per-key TTL is the server's own timer: it must run in the bubble's time.
func TestServerLivesInBubble(t *testing.T) {
	for range 2 {
		natstest.Bubble(t, func(t *testing.T) {
			js, err := jetstream.New(natstest.Connect(t, natstest.Server(t)))
			require.NoError(t, err)
			kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Second})
			require.NoError(t, err)
			_, err = kv.Create(t.Context(), "k", []byte("v"), jetstream.KeyTTL(10*time.Second))
			require.NoError(t, err)
			start := time.Now()
			require.Eventually(t, func() bool {
				_, err := kv.Get(t.Context(), "k")
				return err != nil
			}, time.Minute, 100*time.Millisecond)
			require.InDelta(t, 10*time.Second, time.Since(start), float64(2*time.Second))
		})
	}
}

func TestListenerRestartsOnSamePortAndFiles(t *testing.T) {
	srv := natstest.ListenServer(t)
	url := srv.ClientURL()
	nc := srv.Dial()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	_, err = kv.Put(t.Context(), "k", []byte("v"))
	require.NoError(t, err)

	srv.Stop()
	require.Eventually(t, func() bool { return nc.Status() == nats.RECONNECTING }, 5*time.Second, time.Millisecond)
	srv.Restart()
	require.Equal(t, url, srv.ClientURL())
	require.Eventually(t, func() bool {
		e, err := kv.Get(t.Context(), "k")
		return err == nil && string(e.Value()) == "v"
	}, 10*time.Second, 10*time.Millisecond)
}

func TestClusterReplicates(t *testing.T) {
	nodes := natstest.Cluster(t, 3)
	js, err := jetstream.New(nodes.Dial(t))
	require.NoError(t, err)
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Replicas: 3, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
}
