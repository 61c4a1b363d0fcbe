package replay_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/replay"
)

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestFramesOutliveTheirLeader stops the server that leads the stream.
func TestFramesOutliveTheirLeader(t *testing.T) {
	nodes := natstest.Cluster(t, 3)
	nc := nodes.Dial(t)
	s := open(t, nc, replay.Options{})
	require.Equal(t, 3, config(t, nc).Replicas)
	sent := publish(t, nc, "a", 700)
	all := func() bool { return len(read(t, s, "a")) == len(sent) }
	require.Eventually(t, all, 10*time.Second, 20*time.Millisecond)

	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), replay.StreamName)
	require.NoError(t, err)
	for _, node := range nodes {
		if node.Name() == stream.CachedInfo().Cluster.Leader {
			node.Shutdown()
		}
	}
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		n := 0
		for data, err := range s.Read(ctx, "llm.replay.a") {
			if err != nil || string(data) != sent[n] {
				return false
			}
			n++
		}
		return n == len(sent)
	}, 20*time.Second, 50*time.Millisecond)
}
