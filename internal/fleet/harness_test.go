package fleet_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// stage is a server with all that workers make, and a Watch of it.
type stage struct {
	t       *testing.T
	srv     *server.Server
	nc      *nats.Conn
	buckets *kv.Buckets
	js      jetstream.JetStream
}

// bubble gives f a stage in fake time.
func bubble(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T) {
		s := &stage{t: t, srv: natstest.Server(t)}
		s.nc = natstest.Connect(t, s.srv)
		f(t, s)
	})
}

// furnish makes buckets and streams, as a worker does.
func (s *stage) furnish() {
	s.t.Helper()
	var err error
	s.js, err = jetstream.New(s.nc)
	require.NoError(s.t, err)
	options := kv.Options{Storage: jetstream.MemoryStorage}
	s.buckets, err = kv.Open(s.t.Context(), s.js, options)
	require.NoError(s.t, err)
	_, err = jobs.Open(s.t.Context(), s.js, s.buckets.Jobs, jobs.StreamOptions{Options: options})
	require.NoError(s.t, err)
}

// watch runs a Watch until t ends and waits until it is ready.
func (s *stage) watch(changed func()) *fleet.Watch {
	s.t.Helper()
	w, err := fleet.New(fleet.Config{Conn: natstest.Connect(s.t, s.srv), OnChange: changed})
	require.NoError(s.t, err)
	follow(s.t, w)
	<-w.Ready()
	natstest.Advance(time.Second)
	return w
}

// follow runs w until t ends and requires that it ends well.
func follow(t *testing.T, w *fleet.Watch) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// worker answers on llm.status until stop is called.
func (s *stage) worker(name string, states map[string]breaker.State) (stop func()) {
	s.t.Helper()
	sub, err := s.nc.Subscribe(subjects.Status, func(msg *nats.Msg) {
		list := []breaker.Status{}
		for key, state := range states {
			list = append(list, breaker.Status{Key: key, State: state, Since: time.Now().Add(-time.Minute), Failures: 2, RetryMS: 4000})
		}
		s.reply(msg, name, list)
	})
	require.NoError(s.t, err)
	require.NoError(s.t, s.nc.Flush())
	return func() { require.NoError(s.t, sub.Unsubscribe()) }
}

func (s *stage) reply(msg *nats.Msg, name string, breakers []breaker.Status) {
	data, err := json.Marshal(map[string]any{
		"worker": "id", "version": "1.2.3", "state": "joined", "stats": map[string]any{"requests": 40, "busy": 3, "in_flight": 5, "slots": 256},
		"details": map[string]any{"worker": name, "nats": "nats://n1:4222", "breakers": breakers,
			"features": []any{map[string]any{"name": "support", "targets": []string{"primary/model-a", "backup/vendor/model.b"}}}},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, msg.Respond(data))
}

// event publishes what a worker tells.
func (s *stage) event(name, fields string) {
	s.t.Helper()
	text := `{"event":"` + name + `","time":"2026-11-30T08:23:40Z","worker":"w1"`
	if fields != "" {
		text += "," + fields
	}
	require.NoError(s.t, s.nc.Publish(subjects.Event(name), []byte(text+"}")))
}
