package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

func newKey(t *testing.T, tenant string) (secret string, keys *gateway.Keys) {
	t.Helper()
	secret, line, err := gateway.NewKey(tenant)
	require.NoError(t, err)
	require.NotContains(t, line, secret)
	keys, err = gateway.ParseKeys("# who may ask\n\n" + line + " # since today\nother sha256:" + strings.Repeat("0", 64))
	require.NoError(t, err)
	return secret, keys
}

// TestKeysAreTenants shows that a request goes out in the name of its key's
// tenant, with all that its headers say.
func TestKeysAreTenants(t *testing.T) {
	secret, keys := newKey(t, "acme")
	p := fake.New()
	srv := natstest.ListenServer(t)
	work(t, srv, bus.Config{Completer: model{p}, Tenants: true})
	r := open(t, srv, func(c *gateway.Config) { c.Keys = keys })
	for _, body := range []string{hello, helloStream} {
		got := r.ask(t, body, "Authorization", "Bearer "+secret, "Idempotency-Key", "order-17", "X-Llmbus-Class", "background",
			"X-Llmbus-Data-Class", "public", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Host", "gateway.example")
		require.Equal(t, 200, got.status, got.body)
		req := p.Calls()[p.Count()-1].Request
		require.Equal(t, []any{"acme", "support", "order-17", llm.ClassBackground, "public", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
			[]any{req.Tenant, req.Feature, req.IdempotencyKey, req.Class, req.DataClass, req.TraceParent})
		require.Equal(t, got.header.Get("X-Request-Id"), req.ID)
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	secret, keys := newKey(t, "acme")
	p := fake.New()
	r := script(t, p, func(c *gateway.Config) { c.Keys = keys })
	for _, header := range []string{"", secret, "Basic " + secret, "Bearer", "Bearer ", "Bearer llmbus_x", "Bearer " + strings.Repeat("0", 64), "Bearer " + secret + "x"} {
		for _, path := range []string{"/v1/chat/completions", "/v1/models", "/v1/models/support"} {
			method, body := http.MethodGet, ""
			if strings.HasSuffix(path, "completions") {
				method, body = http.MethodPost, hello
			}
			got := r.do(t, r.request(t, t.Context(), method, path, body, "Authorization", header))
			require.Equal(t, []any{401, "invalid_api_key", "false"}, []any{got.status, *got.fault(t).Code, got.header.Get("X-Should-Retry")}, header)
			require.NotContains(t, got.body, secret)
		}
	}
	require.Zero(t, p.Count())
	require.Equal(t, 200, r.get(t, "/healthz").status, "health needs no key")
}

func TestKeyFiles(t *testing.T) {
	hash := " sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"":                      "there is no key; make one with broker gateway key <tenant>",
		"# nothing\n":           "there is no key; make one with broker gateway key <tenant>",
		"acme":                  "entry 1: must be <tenant> sha256:<hex>, as broker gateway key prints it",
		"a.b" + hash:            "entry 1: the tenant must be 1 to 64 of A-Z, a-z, 0-9, _ and -",
		"acme llmbus_ABC":       "entry 1: the key must be sha256: and 64 hex digits, never the key itself; broker gateway key makes both",
		"x" + hash + "\nacme x": "entry 2: the key must be sha256: and 64 hex digits, never the key itself; broker gateway key makes both",
	} {
		_, err := gateway.ParseKeys(text)
		require.EqualError(t, err, want)
	}
	keys, err := gateway.ParseKeys("acme" + hash + ",-" + hash + "\r\n")
	require.NoError(t, err)
	require.Equal(t, 2, keys.Len())
	require.ErrorContains(t, keys.Fit(true), "a key without a tenant")
	require.ErrorContains(t, keys.Fit(false), "a key of the tenant acme")
	keys, err = gateway.ParseKeys("acme" + hash)
	require.NoError(t, err)
	require.NoError(t, keys.Fit(true))
	_, _, err = gateway.NewKey("a b")
	require.Error(t, err)
	secret, line, err := gateway.NewKey("")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(line, "- sha256:"), line)
	require.Greater(t, len(secret), 40)
}

// TestOthersAreNotServedWithoutKeys covers the address that is served and, since
// a browser on this machine reaches it too, who asks.
func TestOthersAreNotServedWithoutKeys(t *testing.T) {
	srv := natstest.ListenServer(t)
	s, err := gateway.New(gateway.Config{Conn: srv.Dial()})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	require.ErrorIs(t, s.Run(t.Context(), l), gateway.ErrNoKeys)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)

	p := fake.New()
	r := script(t, p)
	for name, header := range map[string][]string{
		"unknown_host":           {"Host", "rebound.example:8080"},
		"forwarded":              {"X-Forwarded-For", "192.0.2.1"},
		"cross_origin":           {"Origin", "https://evil.example"},
		"unsupported_media_type": {"Content-Type", "text/plain"},
	} {
		got := r.ask(t, hello, header...)
		require.Equal(t, name, *got.fault(t).Code)
	}
	require.Zero(t, p.Count())
	for _, host := range []string{"localhost:8080", "127.0.0.1", "[::1]:80"} {
		require.Equal(t, 200, r.ask(t, hello, "Host", host).status)
	}
}

func TestPathsAndMethods(t *testing.T) {
	r := script(t, fake.New())
	for _, tc := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/v1/chat/completions", 405, "method_not_allowed"},
		{"POST", "/v1/models", 405, "method_not_allowed"},
		{"POST", "/v1/embeddings", 404, "unknown_url"},
		{"GET", "/", 404, "unknown_url"},
		{"GET", "/v1/models/none", 404, "model_not_found"},
	} {
		got := r.do(t, r.request(t, t.Context(), tc.method, tc.path, ""))
		require.Equal(t, []any{tc.status, tc.code}, []any{got.status, *got.fault(t).Code}, tc.path)
	}
	require.Equal(t, "POST", r.get(t, "/v1/chat/completions").header.Get("Allow"))
}

func TestBodiesAreBounded(t *testing.T) {
	p := fake.New()
	r := script(t, p, func(c *gateway.Config) { c.MaxBody = 1000 })
	large := `{"model":"support","messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}]}`
	require.Equal(t, "too_large", *r.ask(t, large).fault(t).Code)

	req := r.request(t, t.Context(), "POST", "/v1/chat/completions", "", "Content-Type", "application/json")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(large)), -1
	got := r.do(t, req)
	require.Equal(t, []any{413, "too_large"}, []any{got.status, *got.fault(t).Code}, "a body of unknown length")

	require.Equal(t, "invalid_request", *r.ask(t, "", "Content-Type", "application/json").fault(t).Code)

	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
	require.NoError(t, err)
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(text), "HTTP/1.1 400 ")
	require.Contains(t, string(text), "not framed as HTTP demands")
	require.Zero(t, p.Count())
}

func TestABodyThatDoesNotEnd(t *testing.T) {
	r := open(t, natstest.ListenServer(t), func(c *gateway.Config) { c.ReadTimeout = 100 * time.Millisecond })
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	req := r.request(t, t.Context(), "POST", "/v1/chat/completions", "", "Content-Type", "application/json")
	req.Body, req.ContentLength = in, 100
	go func() { _, _ = io.WriteString(out, `{"model":`) }()
	got := r.do(t, req)
	require.Equal(t, []any{408, "incomplete_body", "true"}, []any{got.status, *got.fault(t).Code, got.header.Get("X-Should-Retry")})
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	free := make(chan struct{})
	p := fake.New(fake.Step{Until: free})
	r := script(t, p, func(c *gateway.Config) { c.MaxInFlight = 1 })
	first := make(chan reply, 1)
	go func() { first <- r.ask(t, hello) }()
	require.Eventually(t, func() bool { return p.Running() == 1 }, patience, tick)
	got := r.ask(t, hello)
	require.Equal(t, []any{429, "busy", "true", "1"}, []any{got.status, *got.fault(t).Code, got.header.Get("X-Should-Retry"), got.header.Get("Retry-After")})
	close(free)
	require.Equal(t, 200, (<-first).status)
	require.Equal(t, 200, r.ask(t, hello).status)
}

func TestSettingsAreChecked(t *testing.T) {
	nc := natstest.ListenServer(t).Dial()
	for _, cfg := range []gateway.Config{{}, {Conn: nc, MaxBody: -1}, {Conn: nc, Grace: -1}, {Conn: nc, Outage: -1}, {Conn: nc, MaxTimeout: 25 * time.Hour}} {
		_, err := gateway.New(cfg)
		require.ErrorContains(t, err, "gateway: ")
	}
}

func TestModels(t *testing.T) {
	r := script(t, fake.New())
	golden(t, "models.json", pretty(t, r.get(t, "/v1/models").body))
	golden(t, "model.json", pretty(t, r.get(t, "/v1/models/support").body))
	require.Equal(t, 200, r.get(t, "/readyz").status)
}

func TestNobodyIsThere(t *testing.T) {
	srv := natstest.ListenServer(t)
	r := open(t, srv, func(c *gateway.Config) { c.Admission = 50 * time.Millisecond })
	for _, body := range []string{hello, helloStream} {
		got := r.ask(t, body)
		require.Equal(t, []any{503, "unavailable", "true"}, []any{got.status, *got.fault(t).Code, got.header.Get("X-Should-Retry")})
	}
	require.Equal(t, 503, r.get(t, "/v1/models").status)
	got := r.get(t, "/readyz")
	require.Equal(t, []any{503, `{"status":"unavailable","reason":"no worker answers"}` + "\n"}, []any{got.status, got.body})
	require.Equal(t, 200, r.get(t, "/healthz").status)
}

// TestNATSGoesAway stops NATS under a request in flight, and asks without it.
func TestNATSGoesAway(t *testing.T) {
	p := fake.New(fake.Hangs())
	srv := natstest.ListenServer(t)
	stop := work(t, srv, bus.Config{Completer: model{p}})
	r := open(t, srv, func(c *gateway.Config) { c.Admission, c.Outage = 50*time.Millisecond, 50*time.Millisecond })
	for _, body := range []string{hello, helloStream} {
		inFlight := make(chan reply, 1)
		running := p.Count()
		go func() { inFlight <- r.ask(t, body) }()
		require.Eventually(t, func() bool { return p.Count() > running }, patience, tick)
		r.srv.Stop()
		got := <-inFlight
		require.Equal(t, []any{503, "unavailable"}, []any{got.status, *got.fault(t).Code})
		got = r.ask(t, body)
		require.Equal(t, []any{503, "unavailable", "2200"}, []any{got.status, *got.fault(t).Code, got.header.Get("Retry-After-Ms")})
		require.Equal(t, 503, r.get(t, "/readyz").status)
		r.srv.Restart()
		require.Eventually(t, func() bool { return r.get(t, "/readyz").status == 200 }, patience, 20*tick)
	}
	require.Eventually(t, func() bool { return p.Running() == 0 }, patience, tick, "what was given up goes on")
	stop() // while its server is there
}

// TestHandlersBesideTheAPI end with the intake, so that a page that is open does
// not use up the grace of answers.
func TestHandlersBesideTheAPI(t *testing.T) {
	srv := natstest.ListenServer(t)
	nc := srv.Dial()
	s, err := gateway.New(gateway.Config{Conn: nc})
	require.NoError(t, err)
	open, ended := make(chan struct{}), make(chan error, 1)
	s.Handle("/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(open)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}))
	r := serve(t, srv, nc, s)
	go func() { _, _ = http.Get(r.url) }()
	<-open
	r.stop()
	require.Error(t, <-ended)
	require.NoError(t, <-r.end)
}

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	os.Exit(code)
}
