package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// A leader that is cut off goes on to lead for ten seconds or more before it
// notices. What it says meanwhile is not the bucket's word.
func TestAMinorityIsNotFresh(t *testing.T) {
	m := natstest.NewMesh(t, 3)
	nc := m.Dial(0)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := kv.Open(t.Context(), js, kv.Options{})
	require.NoError(t, err)
	mirror := run(t, b.Flags, kv.MirrorConfig{Interval: time.Second})
	<-mirror.Ready()
	m.Lead(nc, "KV_"+kv.FlagsBucket, 0)
	require.Eventually(t, mirror.Fresh, 10*time.Second, time.Millisecond)
	_, err = b.Flags.Put(t.Context(), "all", []byte("on"))
	require.NoError(t, err)

	m.Isolate(0)
	cut := time.Now()
	require.Eventually(t, func() bool { return !mirror.Fresh() }, 30*time.Second, time.Millisecond)
	require.Less(t, time.Since(cut), 5*time.Second, "though the last good read counts for 3 s")
	t.Logf("not fresh %s after the cut", time.Since(cut))
	require.Equal(t, "on", value(mirror, "all"), "what is known stays")
	m.Heal(0)
	require.Eventually(t, mirror.Fresh, 20*time.Second, time.Millisecond)
}
