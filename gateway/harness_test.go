package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

const (
	patience = time.Minute // on a busy machine; a test that passes does not wait for it
	tick     = 2 * time.Millisecond
)

// model plays the chain over the scripted provider.
type model struct{ *fake.Provider }

func (m model) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := m.Provider.Complete(ctx, req)
	return served(req, resp), terminal(ctx, err)
}

func (m model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if !yield(llm.Frame{Attempt: 1, Type: llm.FrameStart, Provider: "fake", Model: "fake-1"}, nil) {
			return
		}
		for f, err := range m.Provider.Stream(ctx, req) {
			f.Attempt, f.Response = 1, served(req, f.Response)
			if !yield(f, terminal(ctx, err)) {
				return
			}
		}
	}
}

func served(req *llm.Request, resp *llm.Response) *llm.Response {
	if resp != nil && resp.ServedBy == "" {
		resp.ServedBy, resp.Provider, resp.Model = llm.ServedByModel, "fake", "fake-1"
	}
	if resp != nil {
		resp.ID = req.ID
	}
	return resp
}

// terminal is what the chain makes of a failure. An error of the bus passes.
func terminal(ctx context.Context, err error) error {
	if _, ok := err.(*llm.Error); ok || err == nil || ctx.Err() != nil { //nolint:errorlint // as scripted
		return err
	}
	return llm.Errorf(llm.CodeUnavailable, "%s", provider.AsFailure(err).Outcome)
}

// rig is a gateway on a real socket before a worker that is scripted.
type rig struct {
	srv  *natstest.Listener
	nc   *nats.Conn // the gateway's
	url  string
	stop context.CancelFunc
	end  chan error // what Run returned, once
}

// script starts a worker that follows the steps, and a gateway.
func script(t *testing.T, p *fake.Provider, change ...func(*gateway.Config)) *rig {
	t.Helper()
	srv := natstest.ListenServer(t)
	work(t, srv, bus.Config{Completer: model{p}})
	return open(t, srv, change...)
}

// work starts a worker until the test ends, or until stop is called.
func work(t *testing.T, srv *natstest.Listener, cfg bus.Config) (stop func()) {
	t.Helper()
	cfg.Conn = srv.Dial()
	if cfg.Status == nil {
		cfg.Status = func() any { return map[string]any{"features": []map[string]any{{"name": "support"}, {"name": "chat"}}} }
	}
	w, err := bus.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return w.State() == bus.Joined }, patience, tick)
	require.NoError(t, cfg.Conn.FlushTimeout(patience))
	return stop
}

// open starts a gateway until the test ends.
func open(t *testing.T, srv *natstest.Listener, change ...func(*gateway.Config)) *rig {
	t.Helper()
	cfg := gateway.Config{Conn: srv.Dial(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))}
	for _, f := range change {
		f(&cfg)
	}
	s, err := gateway.New(cfg)
	require.NoError(t, err)
	return serve(t, srv, cfg.Conn, s)
}

func serve(t *testing.T, srv *natstest.Listener, nc *nats.Conn, s *gateway.Server) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r := &rig{srv: srv, nc: nc, url: "http://" + l.Addr().String(), stop: stop, end: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.end <- s.Run(ctx, l)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return r
}

// reply is what came of one request.
type reply struct {
	status int
	header http.Header
	body   string
	cut    error // the body ended before its end
}

// ask sends a chat completion. Pairs of name and value are headers.
func (r *rig) ask(t *testing.T, body string, header ...string) reply {
	t.Helper()
	return r.do(t, r.request(t, t.Context(), http.MethodPost, "/v1/chat/completions", body, header...))
}

func (r *rig) get(t *testing.T, path string, header ...string) reply {
	t.Helper()
	return r.do(t, r.request(t, t.Context(), http.MethodGet, path, "", header...))
}

func (r *rig) request(t *testing.T, ctx context.Context, method, path, body string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

func (r *rig) do(t *testing.T, req *http.Request) reply {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), err}
}

// fault is the error of a reply, whose body must be exactly that of the API.
func (r reply) fault(t *testing.T) fault {
	t.Helper()
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.NotEmpty(t, r.header.Get("X-Should-Retry"))
	require.NotEmpty(t, r.header.Get("X-Request-Id"))
	return faultIn(t, r.body)
}

type fault struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func faultIn(t *testing.T, body string) fault {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	var v struct {
		Error *fault `json:"error"`
	}
	require.NoError(t, d.Decode(&v), body)
	require.NotNil(t, v.Error, body)
	require.NotEmpty(t, v.Error.Message)
	require.NotEmpty(t, v.Error.Type)
	return *v.Error
}

// events are the data of the events of a stream.
func (r reply) events(t *testing.T) []string {
	t.Helper()
	require.Equal(t, "text/event-stream; charset=utf-8", r.header.Get("Content-Type"))
	var list []string
	for event := range strings.SplitSeq(strings.TrimSuffix(r.body, "\n\n"), "\n\n") {
		for line := range strings.SplitSeq(event, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				list = append(list, data)
			} else {
				require.True(t, strings.HasPrefix(line, ":"), line)
			}
		}
	}
	return list
}

var (
	ids     = regexp.MustCompile(`chatcmpl-[A-Z0-9]{26}`)
	created = regexp.MustCompile(`"created":( ?)\d+`)
)

// golden compares text with a file. UPDATE_GOLDEN=1 writes it anew.
func golden(t *testing.T, name, text string) {
	t.Helper()
	text = created.ReplaceAllString(ids.ReplaceAllString(text, "chatcmpl-ID"), `"created":${1}1796035533`)
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func pretty(t *testing.T, body string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, []byte(strings.TrimSpace(body)), "", "  "))
	return out.String() + "\n"
}

const (
	hello       = `{"model":"support","messages":[{"role":"user","content":"hello"}]}`
	helloStream = `{"model":"support","messages":[{"role":"user","content":"hello"}],"stream":true}`
)
