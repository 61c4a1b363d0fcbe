package kv_test

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

// flags runs Flags until t ends and waits until they are read.
func flags(t testing.TB, b *kv.Bucket, c kv.FlagsConfig) *kv.Flags {
	t.Helper()
	f, err := kv.NewFlags(b, c)
	require.NoError(t, err)
	follow(t, f.Run)
	<-f.Ready()
	return f
}

func off(t testing.TB, f *kv.Flags) (off, degraded bool) {
	t.Helper()
	set, degraded := f.Current(t.Context())
	_, off = set.Off("support", "acme")
	return off, degraded
}

func TestFlipIsObeyedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		_, err := b.Flags.Put(t.Context(), "feature.chat", []byte("off"))
		require.NoError(t, err)
		var flips []kv.Flip
		f := flags(t, b.Flags, kv.FlagsConfig{OnChange: func(_ *kv.FlagSet, fl []kv.Flip) { flips = append(flips, fl...) }})
		require.Empty(t, flips, "what is off at the start is no flip")
		isOff, degraded := off(t, f)
		require.False(t, isOff || degraded)

		people, err := js.KeyValue(t.Context(), kv.FlagsBucket)
		require.NoError(t, err)
		for _, value := range []string{"off", "off because", "off now", "on", "nonsense"} {
			_, err = people.PutString(t.Context(), "feature.support", value)
			require.NoError(t, err)
			synctest.Wait()
			isOff, degraded = off(t, f)
			require.Equal(t, value != "on", isOff, value)
			require.False(t, degraded)
		}
		require.NoError(t, people.Delete(t.Context(), "feature.support"))
		synctest.Wait()
		isOff, _ = off(t, f)
		require.False(t, isOff)

		type state struct{ on, now bool }
		var seen []state
		for _, flip := range flips {
			require.Equal(t, "feature.support", flip.New.Key)
			seen = append(seen, state{flip.New.On, flip.New.Now})
		}
		require.Equal(t, []state{{false, false}, {false, true}, {true, false}, {false, false}, {true, false}}, seen)
	})
}

// Until the mirror is fresh the bucket is read directly, once for all who ask.
func TestStaleMirrorIsBypassed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *server.Server, b *kv.Buckets, js jetstream.JetStream) {
		_, err := b.Flags.Put(t.Context(), "all", []byte("off"))
		require.NoError(t, err)
		nc := js.Conn()
		f, err := kv.NewFlags(b.Flags, kv.FlagsConfig{})
		require.NoError(t, err)
		follow(t, f.Run)
		before := nc.Stats().OutMsgs
		var wg sync.WaitGroup
		var obeyed atomic.Int32
		for range 200 {
			wg.Go(func() {
				if isOff, degraded := off(t, f); isOff && !degraded {
					obeyed.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 200, obeyed.Load())
		require.Less(t, nc.Stats().OutMsgs-before, uint64(20))
	})
}

func TestFlagsWithoutKVAreTheLastKnown(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *server.Server, jetstream.JetStream){
		"no connection": func(_ *testing.T, srv *server.Server, _ jetstream.JetStream) { srv.Shutdown() },
		"no JetStream": func(t *testing.T, srv *server.Server, _ jetstream.JetStream) {
			require.NoError(t, srv.DisableJetStream())
		},
		"no bucket": func(t *testing.T, _ *server.Server, js jetstream.JetStream) {
			require.NoError(t, js.DeleteKeyValue(t.Context(), kv.FlagsBucket))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *server.Server, b *kv.Buckets, js jetstream.JetStream) {
				f := flags(t, b.Flags, kv.FlagsConfig{})
				_, err := b.Flags.Put(t.Context(), "all", []byte("off"))
				require.NoError(t, err)
				synctest.Wait()
				lose(t, srv, js)
				natstest.Advance(20 * time.Second)
				began := time.Now()
				isOff, degraded := off(t, f)
				require.True(t, isOff)
				require.True(t, degraded)
				for range 100 {
					_, degraded = off(t, f)
					require.True(t, degraded)
				}
				require.LessOrEqual(t, time.Since(began), 250*time.Millisecond, "only one request waits")
			})
		})
	}
}

// A request that goes away does not spoil the read that others wait for.
func TestDirectReadOutlivesItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		_, err := b.Flags.Put(t.Context(), "all", []byte("off"))
		require.NoError(t, err)
		f, err := kv.NewFlags(b.Flags, kv.FlagsConfig{})
		require.NoError(t, err)
		follow(t, f.Run)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		set, degraded := f.Current(ctx)
		require.False(t, degraded)
		_, isOff := set.Off("any", "")
		require.True(t, isOff)
	})
}

func TestFlagsNobodyUnderstandsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		var log bytes.Buffer
		f := flags(t, b.Flags, kv.FlagsConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for key, value := range map[string]string{"feature.support": "secret text", "features.chat": "off", "model.openai.gpt-4.1": "off"} {
			_, err := b.Flags.Put(t.Context(), key, []byte(value))
			require.NoError(t, err)
		}
		synctest.Wait()
		set, _ := f.Current(t.Context())
		require.Equal(t, []string{"feature.support"}, set.Unrecognised())
		require.Equal(t, []string{"features.chat", "model.openai.gpt-4.1"}, set.Malformed())
		for _, key := range []string{"feature.support", "features.chat", "model.openai.gpt-4.1"} {
			require.Contains(t, log.String(), "key="+key)
		}
		require.NotContains(t, log.String(), "secret")
	})
}

func TestSetListAndClear(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, b *kv.Buckets, _ jetstream.JetStream) {
		ctx, at := t.Context(), time.Now()
		_, err := kv.SetFlag(ctx, b.Flags, kv.Flag{Key: "feature", Reason: "x"})
		require.ErrorContains(t, err, "feature.<f>")
		key := kv.ModelKey("openai", "gpt-4.1:mini")
		revision, err := kv.SetFlag(ctx, b.Flags, kv.Flag{Key: key, Now: true, By: "ada", Reason: "incident 12"})
		require.NoError(t, err)
		natstest.Advance(time.Minute)
		set, err := kv.ReadFlags(ctx, b.Flags)
		require.NoError(t, err)
		list := set.List()
		require.Len(t, list, 1)
		require.True(t, at.Equal(list[0].Set))
		list[0].Set = time.Time{}
		require.Equal(t, kv.Flag{Key: key, Now: true, By: "ada", Reason: "incident 12", Revision: revision}, list[0])
		require.NoError(t, kv.ClearFlag(ctx, b.Flags, key))
		set, err = kv.ReadFlags(ctx, b.Flags)
		require.NoError(t, err)
		require.Empty(t, set.List())
	})
}

func BenchmarkCurrentOff(b *testing.B) {
	buckets, _ := open(b, natstest.Connect(b, natstest.Server(b)))
	for i := range 20 {
		_, err := buckets.Flags.Put(b.Context(), "feature.f"+strconv.Itoa(i), []byte("off"))
		require.NoError(b, err)
	}
	f := flags(b, buckets.Flags, kv.FlagsConfig{})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		set, degraded := f.Current(ctx)
		if _, off := set.Off("support", "acme"); off || degraded {
			b.Fatal("off")
		}
	}
}
