package kv_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// open opens all buckets in memory over nc.
func open(t testing.TB, nc *nats.Conn) (*kv.Buckets, jetstream.JetStream) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	return b, js
}

// run runs a mirror until t ends.
func run(t testing.TB, b *kv.Bucket, c kv.MirrorConfig) *kv.Mirror {
	t.Helper()
	m, err := kv.NewMirror(b, c)
	require.NoError(t, err)
	follow(t, m.Run)
	return m
}

// bubble gives f a server, its buckets and a JetStream context, in fake time.
func bubble(t *testing.T, f func(t *testing.T, srv *server.Server, b *kv.Buckets, js jetstream.JetStream)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		b, js := open(t, natstest.Connect(t, srv))
		f(t, srv, b, js)
	})
}

func value(m *kv.Mirror, key string) string {
	e, _ := m.Get(key)
	return string(e.Value)
}

func TestMirrorShowsPushes(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		_, err := b.Breakers.Put(t.Context(), "before", []byte("1"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		var changes []kv.Change
		m := run(t, b.Breakers, kv.MirrorConfig{OnChange: func(c []kv.Change) { changes = append(changes, c...) }})
		require.False(t, m.Fresh())
		<-m.Ready()
		require.True(t, m.Fresh())
		e, ok := m.Get("before")
		require.True(t, ok)
		require.Equal(t, time.Minute, e.Age(time.Now()), "age by the server's clock")

		began := time.Now()
		revision, err := b.Breakers.Put(t.Context(), "a.b", []byte("2"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "2", value(m, "a.b"))
		require.Equal(t, began, time.Now(), "no re-read was needed")
		require.NoError(t, b.Breakers.Delete(t.Context(), "a.b", revision))
		synctest.Wait()
		_, ok = m.Get("a.b")
		require.False(t, ok)
		require.Equal(t, []kv.Op{kv.OpPut, kv.OpPut, kv.OpDelete}, ops(changes))
		require.Equal(t, revision, changes[2].Old.Revision)
	})
}

func ops(changes []kv.Change) (list []kv.Op) {
	for _, c := range changes {
		list = append(list, c.Op)
	}
	return list
}
