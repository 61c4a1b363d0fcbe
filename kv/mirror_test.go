package kv_test

import (
	"slices"
	"strconv"
	"strings"
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
		natstest.Advance(time.Minute)
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

// Expiry reaches a mirror as the server's marker, and what no marker tells by
// the next re-read.
func TestMirrorSeesKeysEnd(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		stream, err := js.Stream(t.Context(), "KV_"+kv.BreakersBucket)
		require.NoError(t, err)
		cfg := stream.CachedInfo().Config
		cfg.AllowMsgTTL, cfg.SubjectDeleteMarkerTTL = true, time.Minute
		_, err = js.UpdateStream(t.Context(), cfg)
		require.NoError(t, err)
		var changes []kv.Change
		m := run(t, b.Breakers, kv.MirrorConfig{Interval: time.Hour, OnChange: func(c []kv.Change) { changes = append(changes, c...) }})
		<-m.Ready()
		natstest.Advance(time.Second)
		_, err = b.Breakers.Create(t.Context(), "short", []byte("1"), 2*time.Second)
		require.NoError(t, err)
		for _, key := range []string{"b", "a", "c"} {
			_, err = b.Breakers.Put(t.Context(), key, []byte("1"))
			require.NoError(t, err)
		}
		natstest.Advance(5 * time.Second)
		require.Equal(t, kv.OpExpire, changes[len(changes)-1].Op)
		require.Empty(t, value(m, "short"))

		require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.llm_breakers.a")))
		require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.llm_breakers.b")))
		natstest.Advance(time.Second)
		require.NoError(t, m.Refresh(t.Context()))
		require.Empty(t, value(m, "a"))
		require.Equal(t, "1", value(m, "c"))
	})
}

func TestMirrorFindsWhatNoPushTold(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		m := run(t, b.Breakers, kv.MirrorConfig{})
		<-m.Ready()
		natstest.Advance(time.Second)
		for key := range strings.FieldsSeq("a b") {
			_, err := b.Breakers.Put(t.Context(), key, []byte("1"))
			require.NoError(t, err)
		}
		stream, err := js.Stream(t.Context(), "KV_"+kv.BreakersBucket)
		require.NoError(t, err)
		require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.llm_breakers.a")))
		natstest.Advance(6 * time.Second)
		require.Empty(t, value(m, "a"))
		require.Equal(t, "1", value(m, "b"))

		require.NoError(t, js.DeleteKeyValue(t.Context(), kv.BreakersBucket))
		natstest.Advance(20 * time.Second)
		require.False(t, m.Fresh(), "a bucket that cannot be read makes the mirror stale")
		require.Equal(t, "1", value(m, "b"), "and keeps what was known")
		again, _ := open(t, js.Conn())
		_, err = again.Breakers.Put(t.Context(), "c", []byte("anew"))
		require.NoError(t, err)
		natstest.Advance(6 * time.Second)
		require.True(t, m.Fresh())
		require.Empty(t, value(m, "b"))
		require.Equal(t, "anew", value(m, "c"))
	})
}

// More keys than one request for values may have.
func TestMirrorReadsManyKeys(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		const keys = 1500
		for i := range keys {
			require.NoError(t, js.Conn().Publish("$KV.llm_flags.tenant.t"+strconv.Itoa(i), []byte("off")))
		}
		synctest.Wait()
		m := run(t, b.Flags, kv.MirrorConfig{})
		<-m.Ready()
		require.Equal(t, keys, len(slices.Collect(m.All())))
	})
}

func TestMirrorTrustsOnlyTheServersHeaders(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		m := run(t, b.Flags, kv.MirrorConfig{})
		<-m.Ready()
		forged := nats.NewMsg("$KV.llm_flags.all")
		forged.Header.Set("Nats-Sequence", "999999")
		forged.Data = []byte("off")
		require.NoError(t, js.Conn().PublishMsg(forged))
		_, err := b.Flags.Put(t.Context(), "all", []byte("on"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "on", value(m, "all"))
	})
}

func TestMirrorNeedsRepublish(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		_, err := kv.NewMirror(b.Probes, kv.MirrorConfig{})
		require.ErrorIs(t, err, kv.ErrNotMirrored)

		m := run(t, b.Flags, kv.MirrorConfig{})
		<-m.Ready()
		stream, err := js.Stream(t.Context(), "KV_"+kv.FlagsBucket)
		require.NoError(t, err)
		cfg := stream.CachedInfo().Config
		cfg.RePublish = nil
		_, err = js.UpdateStream(t.Context(), cfg)
		require.NoError(t, err)
		natstest.Advance(20 * time.Second)
		require.False(t, m.Fresh(), "nobody would tell of a change")
		require.ErrorIs(t, m.Refresh(t.Context()), kv.ErrNotMirrored)
	})
}

func TestMirrorEndsWithItsConnection(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		b, _ := open(t, nc)
		m, err := kv.NewMirror(b.Flags, kv.MirrorConfig{})
		require.NoError(t, err)
		done := make(chan error)
		go func() { done <- m.Run(t.Context()) }()
		<-m.Ready()
		nc.Close()
		require.ErrorIs(t, <-done, nats.ErrConnectionClosed)
		require.False(t, m.Fresh())
	})
}

func BenchmarkMirrorGet(b *testing.B) {
	buckets, _ := open(b, natstest.Connect(b, natstest.Server(b)))
	for i := range 100 {
		_, err := buckets.Breakers.Put(b.Context(), "provider.model-"+strconv.Itoa(i), []byte(`{"state":"closed"}`))
		require.NoError(b, err)
	}
	m := run(b, buckets.Breakers, kv.MirrorConfig{})
	<-m.Ready()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := m.Get("provider.model-7"); !ok {
			b.Fatal("not there")
		}
	}
}
