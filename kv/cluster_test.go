package kv_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func TestCluster(t *testing.T) {
	nodes := natstest.Cluster(t, 3)
	reconnected := make(chan time.Time, 1)
	nc := nodes.Dial(t, nats.ReconnectHandler(func(*nats.Conn) { reconnected <- time.Now() }))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := kv.Open(t.Context(), js, kv.Options{})
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_"+kv.BreakersBucket)
	require.NoError(t, err)
	require.Equal(t, 3, stream.CachedInfo().Config.Replicas)
	compareAndSwap(t, b.Breakers)

	m := run(t, b.Flags, kv.MirrorConfig{})
	<-m.Ready()
	_, err = b.Flags.Put(t.Context(), "all", []byte("off"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return value(m, "all") == "off" }, time.Second, time.Millisecond)

	// The worker's own server goes, and with it perhaps the leader of the bucket.
	lost := slices.IndexFunc(nodes, func(node *server.Server) bool { return node.Name() == nc.ConnectedServerName() })
	nodes[lost].Shutdown()
	at := <-reconnected
	require.Eventually(t, m.Fresh, 10*time.Second, time.Millisecond)
	require.Less(t, time.Since(at), 2*time.Second)
	t.Logf("right again %s after the reconnect", time.Since(at))
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := b.Flags.Put(ctx, "all", []byte("on"))
		return err == nil
	}, 10*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { return value(m, "all") == "on" }, time.Second, time.Millisecond)
}
