package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

const (
	patience = time.Minute // on a busy machine; a test that passes does not wait for it
	tick     = 2 * time.Millisecond
)

const echoConfig = "providers: {echo: }\nfeatures: {default: {targets: [{provider: echo, model: echo}]}}\n"

// process is one worker under test.
type process struct {
	env  *app.Environment
	log  *lines
	out  *lines
	stop context.CancelFunc
	end  chan error // what Run returned
}

// start runs a worker and waits until it takes requests.
func start(t *testing.T, env *app.Environment, config string) *process {
	t.Helper()
	return runUntilReady(t, env, config, (*app.App).Run)
}

// runUntilReady is start for any way to run an App.
func runUntilReady(t *testing.T, env *app.Environment, config string, run func(*app.App, context.Context) error) *process {
	t.Helper()
	p := launchBy(t, env, config, run)
	select {
	case <-p.ready:
	case err := <-p.end:
		require.NoError(t, err, "the worker ended")
		require.Fail(t, "the worker ended")
	case <-time.After(patience):
		require.Fail(t, "the worker is not ready", p.log.String())
	}
	return &p.process
}

type launched struct {
	process
	ready chan struct{}
}

func launch(t *testing.T, env *app.Environment, config string) *launched {
	t.Helper()
	return launchBy(t, env, config, (*app.App).Run)
}

func launchBy(t *testing.T, env *app.Environment, config string, run func(*app.App, context.Context) error) *launched {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &launched{process{env, &lines{}, &lines{}, stop, make(chan error, 1)}, make(chan struct{})}
	options := app.Options{Version: "1.2.3", Out: p.out, Log: slog.New(slog.NewTextHandler(p.log, nil)), Ready: func() { close(p.ready) }}
	if config != "" {
		options.Config = []byte(config)
	}
	var running sync.WaitGroup
	running.Go(func() { p.end <- run(app.New(env, options), ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return p
}

// ended stops the worker and demands an orderly end.
func (p *process) ended(t *testing.T) {
	t.Helper()
	p.stop()
	require.NoError(t, p.result(t))
}

func (p *process) result(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.end:
		return err
	case <-time.After(patience):
		require.Fail(t, "Run did not return")
		return nil
	}
}

// joining is the environment of a worker of a server.
func joining(srv *natstest.Listener) *app.Environment {
	env := app.Defaults(srv.ClientURL())
	env.ShutdownGrace, env.WorkerName = 5*time.Second, "w"
	return env
}

func ask(t *testing.T, nc *nats.Conn, feature, text string) (*llm.Response, error) {
	t.Helper()
	c, err := client.New(nc, client.WithTimeout(patience))
	require.NoError(t, err)
	return c.Complete(t.Context(), question(feature, text))
}

func question(feature, text string) *llm.Request {
	return &llm.Request{Feature: feature, Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{{Type: llm.PartText, Text: text}}}}}
}

func buckets(t *testing.T, nc *nats.Conn) *kv.Buckets {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := kv.Bind(t.Context(), js)
	require.NoError(t, err)
	return b
}

// lines collects what is written by many goroutines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
