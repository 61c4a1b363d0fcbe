package natstest_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

func TestMesh(t *testing.T) {
	m := natstest.NewMesh(t, 3)
	a, b := m.Dial(0), m.Dial(1)
	require.Equal(t, []int{0, 1}, []int{m.On(a), m.On(b)})
	js, err := jetstream.New(b)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	m.Lead(b, "S", 0)

	heard := func() bool { _, err := a.Request("echo", nil, 100*time.Millisecond); return err == nil }
	_, err = b.Subscribe("echo", func(msg *nats.Msg) { _ = msg.Respond(nil) })
	require.NoError(t, err)
	require.Eventually(t, heard, 5*time.Second, time.Millisecond)
	m.Isolate(0)
	require.Eventually(t, func() bool { return !heard() }, 5*time.Second, time.Millisecond)
	require.True(t, a.IsConnected(), "its clients stay")
	m.Heal(0)
	require.Eventually(t, heard, 5*time.Second, time.Millisecond)

	m.Kill(0)
	require.Eventually(t, func() bool { return m.On(a) > 0 }, 5*time.Second, time.Millisecond)
	m.Restart(0)
	m.Settle()
	m.LameDuck(m.On(a))
	require.Eventually(t, func() bool { return a.IsConnected() }, 5*time.Second, time.Millisecond)
}
