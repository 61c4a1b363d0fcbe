package app_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/subjects"
)

// BenchmarkPath is the whole way of a plain request through a worker whose
// provider answers at once. The server and the caller are in the same process and
// take part in the figures, the same part in each.
func BenchmarkPath(b *testing.B) {
	srv := natstest.ListenServer(b)
	env := joining(srv)
	env.LogFormat = "json"
	ctx, stop := context.WithCancel(b.Context())
	ready := make(chan struct{})
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	require.NoError(b, err)
	log, end := env.NewLog(file)
	b.Cleanup(end)
	options := app.Options{Log: log, Config: []byte(echoConfig), Ready: func() { close(ready) }}
	var running sync.WaitGroup
	running.Go(func() { _ = app.New(env, options).Run(ctx) })
	b.Cleanup(func() {
		stop()
		running.Wait()
	})
	<-ready
	send, answers := pathCaller(b, srv.Dial())
	b.ReportAllocs()
	began, n := cpuTime(b), 0
	for b.Loop() {
		if n++; n > 50 {
			<-answers
		}
		send()
	}
	for range min(n, 50) {
		<-answers
	}
	b.ReportMetric(float64(cpuTime(b)-began)/float64(n), "cpu-ns/op")
}

// pathCaller sends requests and says when an answer has come, at little cost of
// its own.
func pathCaller(b *testing.B, nc *nats.Conn) (send func(), answers <-chan struct{}) {
	b.Helper()
	came, inbox := make(chan struct{}, 100), nc.NewInbox()
	_, err := nc.Subscribe(inbox, func(m *nats.Msg) {
		if m.Header.Get(subjects.HeaderErrorCode) != "" {
			b.Error(string(m.Data))
		}
		came <- struct{}{}
	})
	require.NoError(b, err)
	subject, data := subjects.Complete("default"), []byte(`{"messages":[{"role":"user","content":"Say in a few words what a message bus is for."}]}`)
	return func() { require.NoError(b, nc.PublishRequest(subject, inbox, data)) }, came
}

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
