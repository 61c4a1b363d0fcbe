package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// After a restart a mirror is right again within a second of its reconnect,
// with what was changed while it was away, and pushed to again.
func TestMirrorsSurviveARestart(t *testing.T) {
	srv := natstest.ListenServer(t)
	reconnected := make(chan time.Time, 1)
	// The worker comes back late, so that the change is made before.
	worker := srv.Dial(nats.ReconnectWait(300*time.Millisecond), nats.ReconnectHandler(func(*nats.Conn) { reconnected <- time.Now() }))
	js, err := jetstream.New(worker)
	require.NoError(t, err)
	b, err := kv.Open(t.Context(), js, kv.Options{})
	require.NoError(t, err)
	mirrors := []*kv.Mirror{run(t, b.Flags, kv.MirrorConfig{}), run(t, b.Breakers, kv.MirrorConfig{})}
	for _, m := range mirrors {
		<-m.Ready()
	}
	_, err = b.Flags.Put(t.Context(), "all", []byte("off"))
	require.NoError(t, err)

	srv.Stop()
	for _, m := range mirrors {
		require.Eventually(t, func() bool { return !m.Fresh() }, time.Second, time.Millisecond)
	}
	srv.Restart()
	operator, err := jetstream.New(srv.Dial())
	require.NoError(t, err)
	flags, err := operator.KeyValue(t.Context(), kv.FlagsBucket)
	require.NoError(t, err)
	_, err = flags.PutString(t.Context(), "all", "on")
	require.NoError(t, err)
	at := <-reconnected
	require.Eventually(t, func() bool { return mirrors[0].Fresh() && mirrors[1].Fresh() }, 5*time.Second, time.Millisecond)
	require.Equal(t, "on", value(mirrors[0], "all"))
	require.Less(t, time.Since(at), time.Second)
	t.Logf("right again %s after the reconnect", time.Since(at))

	_, err = flags.PutString(t.Context(), "all", "off now")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return value(mirrors[0], "all") == "off now" }, time.Second, time.Millisecond)
}
