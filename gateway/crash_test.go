package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
)

// broken is a provider that fails in the way that the model of a call names, and
// keeps a log of its calls.
type broken struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string]int
}

// crash is a way to fail and what the caller must see of it.
type crash struct {
	serve  func(w http.ResponseWriter, r *http.Request, stream bool)
	calls  int // of a target that may be called twice
	status int
	code   string
	retry  string
	after  int  // Retry-After, at least; up to a fifth and some seconds are added
	cools  bool // the next request makes no call

	streamed *crash // where a stream differs
}

// unsaid is a Retry-After that the provider left to us.
const unsaid = -1

func status(code int, body string, header ...string) func(http.ResponseWriter, *http.Request, bool) {
	return func(w http.ResponseWriter, _ *http.Request, _ bool) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// chunks writes pieces of a stream; what follows them is up to the caller.
func chunks(w http.ResponseWriter, texts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, text := range texts {
		fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", text)
		_ = http.NewResponseController(w).Flush()
	}
}

func hang(r *http.Request) { <-r.Context().Done() }

const (
	goodBody = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"well"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	lastData = `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

func good(w http.ResponseWriter, _ *http.Request, stream bool) {
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodBody)
		return
	}
	chunks(w, "well")
	_, _ = io.WriteString(w, lastData)
}

// cutOff ends the connection inside a body.
func cutOff(w http.ResponseWriter, _ *http.Request, stream bool) {
	if stream {
		chunks(w, "one", " two")
	} else {
		w.Header().Set("Content-Length", "500")
		_, _ = io.WriteString(w, goodBody[:60])
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

func errorEvent(w http.ResponseWriter, _ *http.Request, stream bool) {
	if !stream {
		status(200, `{"error":{"message":"secret of the provider","type":"server_error","code":null}}`, "Content-Type", "application/json")(w, nil, false)
		return
	}
	chunks(w, "one")
	_, _ = io.WriteString(w, `data: {"error":{"message":"secret of the provider","type":"server_error","code":null}}`+"\n\n")
}

func malformed(w http.ResponseWriter, _ *http.Request, stream bool) {
	if !stream {
		status(200, goodBody[:80], "Content-Type", "application/json")(w, nil, false)
		return
	}
	chunks(w)
	_, _ = io.WriteString(w, "data: {\"choices\":[{\n\ndata: [DONE]\n\n")
}

func emptyBody(w http.ResponseWriter, _ *http.Request, stream bool) {
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	w.Header().Set("Content-Type", "application/json")
}

func emptyChoices(w http.ResponseWriter, _ *http.Request, stream bool) {
	const body = `{"id":"x","object":"chat.completion","model":"m","choices":[]}`
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+body+"\n\ndata: [DONE]\n\n")
		return
	}
	status(200, body, "Content-Type", "application/json")(w, nil, false)
}

// drip sends a little now and then, and does not come to an end in time.
func drip(w http.ResponseWriter, r *http.Request, stream bool) {
	if !stream {
		w.Header().Set("Content-Type", "application/json")
	}
	for {
		if stream {
			chunks(w, "x")
		} else if _, err := io.WriteString(w, " "); err == nil {
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}

// huge sends more than any answer is long.
func huge(w http.ResponseWriter, _ *http.Request, stream bool) {
	piece := strings.Repeat("a", 1<<20)
	if stream {
		chunks(w)
		_, _ = io.WriteString(w, "data: ")
	} else {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
	}
	for range 80 {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}

func page(w http.ResponseWriter, _ *http.Request, _ bool) {
	status(200, "<html>sign in</html>", "Content-Type", "text/html")(w, nil, false)
}

func silent(_ http.ResponseWriter, r *http.Request, _ bool) { hang(r) }

func silentAfterHeaders(w http.ResponseWriter, r *http.Request, stream bool) {
	if stream {
		chunks(w)
	}
	w.WriteHeader(200)
	_ = http.NewResponseController(w).Flush()
	hang(r)
}

const providerError = `{"error":{"message":"secret of the provider","type":"x","param":null,"code":null}}`

// midway is what a caller sees of a stream that fails after a part of it came.
func midway(code string) *crash { return &crash{status: 200, calls: 1, code: code} }

// crashes are sixteen ways and one: the port that nobody listens on.
func crashes() map[string]crash {
	return map[string]crash{
		"500":           {serve: status(500, providerError), calls: 2, status: 503, code: "unavailable", retry: "true"},
		"503":           {serve: status(503, providerError), calls: 2, status: 503, code: "unavailable", retry: "true"},
		"429":           {serve: status(429, providerError), calls: 1, status: 429, code: "rate_limit_exceeded", retry: "true", after: unsaid, cools: true},
		"429-after":     {serve: status(429, providerError, "Retry-After", "7"), calls: 1, status: 429, code: "rate_limit_exceeded", retry: "true", after: 7, cools: true},
		"429-long":      {serve: status(429, providerError, "Retry-After", "300"), calls: 1, status: 429, code: "rate_limit_exceeded", retry: "false", after: 300, cools: true},
		"401":           {serve: status(401, providerError), calls: 1, status: 502, code: "provider_auth", retry: "false"},
		"400":           {serve: status(400, providerError), calls: 1, status: 400, code: "invalid_request", retry: "false"},
		"hang":          {serve: silent, calls: 1, status: 504, code: "deadline", retry: "false"},
		"hang-headers":  {serve: silentAfterHeaders, calls: 1, status: 504, code: "deadline", retry: "false"},
		"cut":           {serve: cutOff, calls: 2, status: 503, code: "unavailable", retry: "true", streamed: midway("interrupted")},
		"error-event":   {serve: errorEvent, calls: 2, status: 503, code: "unavailable", retry: "true", streamed: midway("interrupted")},
		"malformed":     {serve: malformed, calls: 2, status: 503, code: "unavailable", retry: "true"},
		"empty-body":    {serve: emptyBody, calls: 2, status: 503, code: "unavailable", retry: "true"},
		"empty-choices": {serve: emptyChoices, calls: 2, status: 502, code: "invalid_output", retry: "false"},
		"drip":          {serve: drip, calls: 1, status: 504, code: "deadline", retry: "false", streamed: midway("deadline")},
		"huge":          {serve: huge, calls: 2, status: 503, code: "unavailable", retry: "true"},
		"html":          {serve: page, calls: 2, status: 503, code: "unavailable", retry: "true"},
		"refused":       {status: 503, code: "unavailable", retry: "true"},
	}
}

func newBroken(t *testing.T) *broken {
	b := &broken{calls: map[string]int{}}
	ways := crashes()
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Model  string
			Stream bool
		}
		if json.NewDecoder(r.Body).Decode(&call) != nil {
			panic(http.ErrAbortHandler)
		}
		b.mu.Lock()
		b.calls[call.Model]++
		b.mu.Unlock()
		if way, ok := ways[call.Model]; ok {
			way.serve(w, r, call.Stream)
			return
		}
		good(w, r, call.Stream)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// taken returns how often a model was called, and forgets it.
func (b *broken) taken(model string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.calls[model]
	delete(b.calls, model)
	return n
}

// fleet starts a real worker over a configuration until the test ends.
func fleet(t *testing.T, srv *natstest.Listener, config string, change ...func(*app.Environment)) {
	t.Helper()
	env := app.Defaults(srv.ClientURL())
	env.ShutdownGrace = 5 * time.Second
	for _, f := range change {
		f(env)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- app.New(env, app.Options{Config: []byte(config), Ready: func() { close(ready) }}).Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	select {
	case <-ready:
	case <-time.After(patience):
		require.Fail(t, "the worker is not ready")
	}
}

// nobody is an address that refuses connections: the system hands its port out
// to no listener.
const nobody = "127.0.0.1:1"

// slow tells whether a way to fail ends by a timeout alone.
func slow(way string) bool { return strings.HasPrefix(way, "hang") || way == "drip" }

// crashConfig has for each way a feature of its own, and one with a backup. What
// fails by itself has more time than a busy machine needs for it.
func crashConfig(b *broken) string {
	var c strings.Builder
	fmt.Fprintf(&c, "breaker: {threshold: 1000}\nproviders:\n  p: {kind: openai, base_url: %q}\n  spare: {kind: openai, base_url: %q}\n  dead: {kind: openai, base_url: \"http://%s\"}\nfeatures:\n", b.URL, b.URL, nobody)
	for name := range crashes() {
		provider := "p"
		if name == "refused" {
			provider = "dead"
		}
		timeout, attempt, firstToken := "1m", "30s", "29s"
		if slow(name) {
			timeout, attempt, firstToken = "2s", "2s", "1900ms"
		}
		fmt.Fprintf(&c, "  %s: {timeout: %s, targets: [{provider: %s, model: %q}]}\n", name, timeout, provider, name)
		fmt.Fprintf(&c, "  %s-spare: {timeout: 1m, on_misconfigured: fail_over, targets: [{provider: %s, model: %q, timeout: %s, first_token_timeout: %s}, {provider: spare, model: good-%s}]}\n", name, provider, name, attempt, firstToken, name)
	}
	return c.String()
}

func crashRig(t *testing.T) (*rig, *broken) {
	b := newBroken(t)
	srv := natstest.ListenServer(t)
	fleet(t, srv, crashConfig(b))
	return open(t, srv), b
}

func question(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}],"stream":%t}`, model, stream)
}

// TestCrashes has a lone provider fail in every way, for whole and for streamed
// answers: the caller sees a clean error in time, and the provider as many calls
// as the chain says.
func TestCrashes(t *testing.T) {
	r, b := crashRig(t)
	for name, way := range crashes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.ask(t, question(name, false))
			way.check(t, got)
			require.Equal(t, way.calls, b.taken(name), "calls to the provider")

			got = r.ask(t, question(name, true))
			want := way
			if way.streamed != nil {
				want = *way.streamed
			}
			if way.cools {
				want.calls = 0
			}
			want.check(t, got)
			require.Equal(t, want.calls, b.taken(name), "calls to the provider for a stream")
		})
	}
}

func (c crash) check(t *testing.T, got reply) {
	t.Helper()
	require.Equal(t, c.status, got.status, got.body)
	require.NotContains(t, got.body, "secret of the provider")
	if c.status == 200 { // broken off
		require.Error(t, got.cut)
		require.NotContains(t, got.body, "[DONE]")
		events := got.events(t)
		require.Equal(t, c.code, *faultIn(t, events[len(events)-1]).Code)
		return
	}
	require.NoError(t, got.cut)
	require.Equal(t, c.code, *got.fault(t).Code)
	require.Equal(t, c.retry, got.header.Get("X-Should-Retry"))
	switch c.after {
	case unsaid:
		return
	case 0:
		require.NotContains(t, got.header, "Retry-After")
		return
	}
	after, err := strconv.Atoi(got.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, c.after, after, float64(c.after)/4+3)
}

// TestCrashesWithASpare has a second target, which answers all that the first
// has not shown a part of.
func TestCrashesWithASpare(t *testing.T) {
	r, b := crashRig(t)
	for name, way := range crashes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				got := r.ask(t, question(name+"-spare", stream))
				switch spare := "good-" + name; {
				case name == "400":
					way.check(t, got)
					require.Zero(t, b.taken(spare))
					continue
				case stream && way.streamed != nil:
					midway("interrupted").check(t, got) // the attempt's own time ran out where the way is slow
					require.Zero(t, b.taken(spare))
					continue
				}
				require.Equal(t, 200, got.status, got.body)
				require.NoError(t, got.cut)
				require.Contains(t, got.body, `"content":"well"`)
				require.Equal(t, "spare", got.header.Get("X-Llmbus-Provider"))
				require.Equal(t, stream, strings.HasSuffix(got.body, "data: [DONE]\n\n"))
				require.Equal(t, 1, b.taken("good-"+name))
			}
			want := min(2, 2*way.calls) // one call for each way to ask
			if way.cools {
				want = 1
			}
			require.Equal(t, want, b.taken(name))
		})
	}
}
