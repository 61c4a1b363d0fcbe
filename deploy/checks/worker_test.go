package checks

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

const (
	patience = 20 * time.Second
	tick     = 10 * time.Millisecond
)

// fleet has a feature for each thing that can happen.
const fleet = `
breaker: {threshold: 2}
limits: {tenants: {greedy: {requests_per_day: 1}}}
providers:
  sim: {kind: openai, base_url: SIM, models: {sim-slow-first-20ms: {price: {input: 1, output: 2}}}}
features:
  good: {targets: [{provider: sim, model: sim-slow-first-20ms}]}
  rescued: {targets: [{provider: sim, model: sim-empty}, {provider: sim, model: sim-ok}]}
  down: {targets: [{provider: sim, model: sim-status-500}, {provider: sim, model: sim-status-504}]}
  sorry: {targets: [{provider: sim, model: sim-status-502}], fallback: [static], static_text: Later.}
  prose: {targets: [{provider: sim, model: sim-prose, attempts: 1}]}
  off: {targets: [{provider: sim, model: sim-ok}]}
`

// worker is one that has all of it happen.
type worker struct {
	t    *testing.T
	nc   *nats.Conn
	log  lines
	out  lines
	door string // of the OpenAI API
}

// start runs a worker over a simulated provider until the test ends.
func start(t *testing.T) *worker {
	t.Helper()
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	w := &worker{t: t, nc: srv.Dial()}
	env := app.Defaults(srv.ClientURL())
	env.Metrics, env.HTTP, env.TenantHeader, env.ShutdownGrace = "127.0.0.1:0", "127.0.0.1:0", true, 5*time.Second
	ctx, stop := context.WithCancel(context.Background())
	ready, end := make(chan struct{}), make(chan error, 1)
	a := app.New(env, app.Options{Version: "1.2.3", Out: &w.out, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Config: []byte(strings.ReplaceAll(fleet, "SIM", provider.URL())), Ready: func() { close(ready) }})
	go func() { end <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-end)
	})
	select {
	case <-ready:
	case err := <-end:
		end <- nil
		require.NoError(t, err, w.log.String())
	case <-time.After(patience):
		require.Fail(t, "the worker is not ready", w.log.String())
	}
	w.door = regexp.MustCompile(`http://\S+/v1`).FindString(w.out.String())
	w.switchOff()
	return w
}

func (w *worker) switchOff() {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	require.NoError(w.t, err)
	buckets, err := kv.Bind(w.t.Context(), js)
	require.NoError(w.t, err)
	_, err = buckets.Flags.Put(w.t.Context(), "feature.off", []byte("off"))
	require.NoError(w.t, err)
	w.scraped(`llmbus_switches_off\{llmbus_scope="feature"\} 1`)
}

// happen asks everything once, plain and streamed.
func (w *worker) happen() {
	w.t.Helper()
	for range 2 { // two failures open a circuit
		for _, stream := range []bool{false, true} {
			w.ask("good", llm.Request{Stream: stream, Tenant: "acme"}, "")
			w.ask("rescued", llm.Request{Stream: stream}, "")
			w.ask("sorry", llm.Request{Stream: stream}, "")
			w.ask("down", llm.Request{Stream: stream}, llm.CodeUnavailable)
			w.ask("off", llm.Request{Stream: stream}, llm.CodeSwitchedOff)
		}
		w.ask("prose", llm.Request{JSONSchema: &llm.JSONSchema{Schema: []byte(`{}`)}}, llm.CodeInvalidOutput)
		w.ask("nosuch", llm.Request{}, llm.CodeUnknownFeature)
	}
	w.askAny("good", llm.Request{Tenant: "greedy"})
	w.ask("good", llm.Request{Tenant: "greedy"}, llm.CodeRateLimited)
	resp, err := http.Post(w.door+"/chat/completions", "application/json", strings.NewReader(`{"model":"good","messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(w.t, err)
	require.NoError(w.t, resp.Body.Close())
	require.Equal(w.t, http.StatusOK, resp.StatusCode)
	require.NoError(w.t, w.nc.PublishMsg(&nats.Msg{Subject: subjects.Job("good"), Data: []byte("no JSON"), Header: nats.Header{subjects.HeaderRequestID: {"j"}}}))
	w.scraped(`llmbus_jobs_dead_letters 1`)
}

// ask demands an error of a code, or none.
func (w *worker) ask(feature string, req llm.Request, code llm.Code) {
	w.t.Helper()
	err := w.askAny(feature, req)
	if code == "" {
		require.NoError(w.t, err, feature)
		return
	}
	require.ErrorIs(w.t, err, &llm.Error{Code: code}, feature)
}

func (w *worker) askAny(feature string, req llm.Request) error {
	options := []client.Option{client.WithTimeout(patience)}
	if req.Tenant != "" {
		options = append(options, client.WithTenantHeader(req.Tenant))
	}
	c, err := client.New(w.nc, options...)
	require.NoError(w.t, err)
	req.Feature, req.Messages = feature, []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}
	if !req.Stream {
		_, err = c.Complete(w.t.Context(), &req)
		return err
	}
	for _, err := range c.Stream(w.t.Context(), &req) {
		if err != nil {
			return err
		}
	}
	return nil
}

// scrape reads what Prometheus would.
func (w *worker) scrape() string {
	w.t.Helper()
	m := regexp.MustCompile(`url=(http://\S+/metrics)`).FindStringSubmatch(w.log.String())
	if m == nil {
		return ""
	}
	resp, err := http.Get(m[1])
	require.NoError(w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return string(body)
}

// scraped waits until the metrics have a line.
func (w *worker) scraped(line string) {
	w.t.Helper()
	pattern := regexp.MustCompile("(?m)^" + line + "$")
	require.Eventually(w.t, func() bool { return pattern.MatchString(w.scrape()) }, patience, tick, line)
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
