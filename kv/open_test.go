package kv_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func TestWorkersOpenAtOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		var wg sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			js, err := jetstream.New(natstest.Connect(t, srv))
			require.NoError(t, err)
			wg.Go(func() { _, errs[i] = kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage}) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	})
}

func TestBucketsAreAsDesigned(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, _ *kv.Buckets, js jetstream.JetStream) {
		for _, want := range []struct {
			bucket, republish string
			history           int64
			ttl, markers      time.Duration
		}{
			{kv.BreakersBucket, "llm.kv.breakers.>", 1, 0, 0},
			{kv.ProbesBucket, "", 1, 0, time.Minute},
			{kv.FlagsBucket, "llm.kv.flags.>", 10, 0, 0},
			{kv.FeaturesBucket, "llm.kv.features.>", 10, 0, 0},
			{kv.CacheBucket, "", 1, 24 * time.Hour, 0},
			{kv.RequestsBucket, "", 1, 24 * time.Hour, 0},
			{kv.JobsBucket, "", 1, 8 * 24 * time.Hour, 0},
			{kv.UsageBucket, "", 1, 400 * 24 * time.Hour, 0},
		} {
			stream, err := js.Stream(t.Context(), "KV_"+want.bucket)
			require.NoError(t, err)
			cfg := stream.CachedInfo().Config
			require.Equal(t, want.history, cfg.MaxMsgsPerSubject, want.bucket)
			require.Equal(t, want.ttl, cfg.MaxAge, want.bucket)
			require.Equal(t, want.markers, cfg.SubjectDeleteMarkerTTL, want.bucket)
			require.Equal(t, 1, cfg.Replicas, want.bucket)
			if want.republish == "" {
				require.Nil(t, cfg.RePublish, want.bucket)
				continue
			}
			require.Equal(t, want.republish, cfg.RePublish.Destination)
		}
	})
}

func TestOpenBringsSettingsUpToDate(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		for _, cfg := range []jetstream.KeyValueConfig{
			{Bucket: kv.FlagsBucket, MaxValueSize: 4096, Description: "ours", TTL: time.Hour},
			{Bucket: kv.ProbesBucket},
			{Bucket: kv.CacheBucket, TTL: time.Minute},
		} {
			cfg.Storage = jetstream.MemoryStorage
			_, err = js.CreateKeyValue(t.Context(), cfg)
			require.NoError(t, err)
		}
		for range 2 {
			open(t, nc)
		}
		stream, err := js.Stream(t.Context(), "KV_"+kv.FlagsBucket)
		require.NoError(t, err)
		cfg := stream.CachedInfo().Config
		require.EqualValues(t, 10, cfg.MaxMsgsPerSubject)
		require.Zero(t, cfg.MaxAge, "a switch must not expire")
		require.NotNil(t, cfg.RePublish)
		require.EqualValues(t, 4096, cfg.MaxMsgSize, "an operator's setting stays")
		require.Equal(t, "ours", cfg.Description)
		stream, err = js.Stream(t.Context(), "KV_"+kv.ProbesBucket)
		require.NoError(t, err)
		require.True(t, stream.CachedInfo().Config.AllowMsgTTL)
	})
}

func TestOpenNamesWhatDoesNotFit(t *testing.T) {
	bubble(t, func(t *testing.T, _ *server.Server, _ *kv.Buckets, js jetstream.JetStream) {
		_, err := kv.Open(t.Context(), js, kv.Options{})
		var unfit *kv.BucketError
		require.ErrorAs(t, err, &unfit)
		require.Equal(t, "storage", unfit.Setting)
		require.ErrorContains(t, err, "llm_breakers")
		require.ErrorContains(t, err, "nats kv del llm_breakers")
	})
}

func TestOpenWaitsForJetStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		js, err := jetstream.New(natstest.Connect(t, srv))
		require.NoError(t, err)
		require.NoError(t, srv.DisableJetStream())
		began := time.Now()
		_, err = kv.Open(t.Context(), js, kv.Options{Storage: jetstream.MemoryStorage})
		require.ErrorContains(t, err, "llm_breakers")
		require.InDelta(t, 10*time.Second, time.Since(began), float64(time.Second))
	})
}

func TestOptionsAreValidated(t *testing.T) {
	for _, bad := range []kv.Options{{Replicas: -1}, {Replicas: 6}, {CacheTTL: -1}, {RequestTTL: time.Millisecond}} {
		require.Error(t, bad.Validate(), "%+v", bad)
	}
	require.NoError(t, kv.Options{}.Validate())
}
