package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/stretchr/testify/require"
)

// paths of the three protocols.
var paths = map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}

const soon, often = 5 * time.Second, 5 * time.Millisecond

// reply is what came back, as far as it came.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func ask(ctx context.Context, s *sim.Server, provider, model string, stream bool) reply {
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"secret-question"}]}`, model, stream)
	return post(ctx, s.URL()+paths[provider], body)
}

func post(ctx context.Context, url, body string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		return reply{err: err}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}

func TestAnswersInEveryProtocol(t *testing.T) {
	s := simtest.Start(t)
	ends := map[string]string{"openai": "data: [DONE]\n\n", "anthropic": `data: {"type":"message_stop"}` + "\n\n", "ollama": "}\n"}
	for provider := range paths {
		for _, model := range []string{"any-model", "sim-ok-t3", "sim-slow-first-1ms"} {
			t.Run(provider+"/"+model, func(t *testing.T) {
				whole := ask(t.Context(), s, provider, model, false)
				require.NoError(t, whole.err)
				require.Equal(t, 200, whole.status)
				require.True(t, json.Valid([]byte(whole.body)), whole.body)
				require.Contains(t, whole.body, "This is a")
				require.NotContains(t, whole.body, "secret-question")

				stream := ask(t.Context(), s, provider, model, true)
				require.NoError(t, stream.err)
				require.Regexp(t, `"(text|content)":"This"`, stream.body)
				require.True(t, bytes.HasSuffix([]byte(stream.body), []byte(ends[provider])), stream.body)
			})
		}
	}
}

func TestFailsAsNamed(t *testing.T) {
	s := simtest.Start(t)
	cases := map[string]func(t *testing.T, r reply){
		"status-503": func(t *testing.T, r reply) {
			require.Equal(t, 503, r.status)
			require.Contains(t, r.body, `"error"`)
		},
		"429-retry-2":      func(t *testing.T, r reply) { require.Equal(t, "2", r.header.Get("Retry-After")) },
		"429-retry-1500ms": func(t *testing.T, r reply) { require.Equal(t, "1500", r.header.Get("Retry-After-Ms")) },
		"unheard-of":       func(t *testing.T, r reply) { require.Equal(t, 404, r.status) },
		"reset":            func(t *testing.T, r reply) { require.ErrorIs(t, r.err, syscall.ECONNRESET) },
		"eof":              func(t *testing.T, r reply) { require.ErrorIs(t, r.err, io.EOF) },
		"cut-after-2":      brokenBy(io.ErrUnexpectedEOF),
		"reset-after-2":    brokenBy(syscall.ECONNRESET),
		"html":             func(t *testing.T, r reply) { require.Contains(t, r.body, "<html>") },
		"wrong-json":       func(t *testing.T, r reply) { require.Contains(t, r.body, "unexpected") },
		"malformed":        unfinished,
		"end-after-2":      unfinished,
		"error-after-2": func(t *testing.T, r reply) {
			require.NoError(t, r.err)
			require.Contains(t, r.body, `"error"`)
		},
	}
	for model, check := range cases {
		for provider := range paths {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stream=%t", model, provider, stream), func(t *testing.T) {
					check(t, ask(t.Context(), s, provider, "sim-"+model, stream))
				})
			}
		}
	}
}

func brokenBy(want error) func(*testing.T, reply) {
	return func(t *testing.T, r reply) {
		require.ErrorIs(t, r.err, want)
		require.Contains(t, r.body, "This")
	}
}

func unfinished(t *testing.T, r reply) {
	require.NoError(t, r.err)
	require.Contains(t, r.body, "This")
	require.False(t, json.Valid([]byte(r.body)))
	require.NotContains(t, r.body, "[DONE]")
	require.NotContains(t, r.body, "message_stop")
}

func TestStreamWithoutTerminator(t *testing.T) {
	s := simtest.Start(t)
	require.NotContains(t, ask(t.Context(), s, "openai", "sim-no-done", true).body, "[DONE]")
	require.NotContains(t, ask(t.Context(), s, "anthropic", "sim-no-done", true).body, "message_stop")
	require.NotContains(t, ask(t.Context(), s, "ollama", "sim-no-done", true).body, "done_reason")
}

func TestFirstCallsOnly(t *testing.T) {
	s := simtest.Start(t)
	for _, want := range []int{500, 500, 200, 200} {
		require.Equal(t, want, ask(t.Context(), s, "openai", "sim-first-2-500", false).status)
	}
	require.Equal(t, 4, s.Calls("sim-first-2-500"))
}

func TestToolsAndSchema(t *testing.T) {
	s := simtest.Start(t)
	for provider, body := range map[string]string{
		"openai":    `{"model":"sim-tools","stream":false,"tools":[{"type":"function","function":{"name":"get_weather"}}]}`,
		"anthropic": `{"model":"sim-tools","stream":true,"tools":[{"name":"get_weather"}]}`,
		"ollama":    `{"model":"sim-tools","tools":[{"type":"function","function":{"name":"get_weather"}}]}`,
	} {
		require.Contains(t, post(t.Context(), s.URL()+paths[provider], body).body, `"name":"get_weather"`)
	}
	schema := `{"type":"object","properties":{"n":{"type":"integer"},"s":{"enum":["x"]},"l":{"type":"array","minItems":1,` +
		`"items":{"type":"boolean"}}},"required":["n","s","l"]}`
	answer := post(t.Context(), s.URL()+paths["ollama"], `{"model":"sim-json","stream":false,"format":`+schema+`}`)
	var got struct{ Message struct{ Content string } }
	require.NoError(t, json.Unmarshal([]byte(answer.body), &got))
	require.JSONEq(t, `{"n":1,"s":"x","l":[true]}`, got.Message.Content)
}

func TestCancelIsSeen(t *testing.T) {
	s := simtest.Start(t)
	for _, model := range []string{"sim-hang", "sim-stall-after-2", "sim-slow-first-1h", "sim-ok-t1000-g1s"} {
		t.Run(model, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan reply, 1)
			go func() { done <- ask(ctx, s, "openai", model, true) }()
			require.Eventually(t, func() bool { return s.Calls(model) == 1 && s.Stats().InFlight == 1 }, soon, often)
			cancel()
			left := time.Now()
			require.ErrorIs(t, (<-done).err, context.Canceled)
			require.Eventually(t, func() bool { return s.Stats().Cancelled[model] == 1 }, soon, often)
			cancels := s.Stats().Cancels
			require.Less(t, cancels[len(cancels)-1].At.Sub(left), 500*time.Millisecond)
			require.Eventually(t, func() bool { return s.Stats().Open == 0 }, soon, often)
		})
	}
}

func TestRulesWinOverNames(t *testing.T) {
	s := simtest.Start(t)
	status := func(provider, model string) int { return ask(t.Context(), s, provider, model, false).status }

	require.NoError(t, s.Control(sim.Rule{Fault: "status-503", Provider: "openai", Times: 2}))
	require.NoError(t, s.Control(sim.Rule{Fault: "sim-429", Model: "m"}))
	require.Equal(t, 429, status("openai", "m"), "the newest rule wins")
	require.Equal(t, 200, status("anthropic", "other"), "no rule matches")
	require.Equal(t, 503, status("openai", "sim-ok"))
	require.Equal(t, 503, status("openai", "sim-ok"))
	require.Equal(t, 200, status("openai", "sim-ok"), "two times only")

	require.NoError(t, s.Control(sim.Rule{Fault: "down-1h", Model: "m"}))
	require.ErrorIs(t, ask(t.Context(), s, "openai", "m", false).err, syscall.ECONNRESET)
	require.Equal(t, 200, status("openai", "other"))

	s.Clear()
	require.Equal(t, 200, status("openai", "m"))
	require.NoError(t, s.Control(sim.Rule{Fault: "500", For: 50 * time.Millisecond}))
	require.Equal(t, 500, status("ollama", "m"))
	require.Eventually(t, func() bool { return status("ollama", "m") == 200 }, soon, often)
	require.Error(t, s.Control(sim.Rule{Fault: "nonsense"}))
	require.Error(t, s.Control(sim.Rule{Fault: "ok", Times: -1}))
}

func TestControlOverHTTP(t *testing.T) {
	s := simtest.Start(t)
	set := post(t.Context(), s.URL()+"/control", `{"fault":"503","for":"1h","times":3,"model":"m","provider":"openai"}`)
	require.Equal(t, 200, set.status)
	require.Contains(t, set.body, `"times": 3`)
	require.Equal(t, 503, ask(t.Context(), s, "openai", "m", false).status)

	for _, bad := range []string{`{"fault":"503","modle":"m"}`, `{"fault":"no"}`, `{"fault":"ok","for":"x"}`, `[]`} {
		require.Equal(t, 400, post(t.Context(), s.URL()+"/control", bad).status)
	}
	get := func(path string) string {
		resp, err := http.Get(s.URL() + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, get("/control"), `"times": 2`)
	var stats sim.Stats
	require.NoError(t, json.Unmarshal([]byte(get("/stats")), &stats))
	require.Equal(t, map[string]int{"m": 1}, stats.Calls)
	require.Equal(t, 1, stats.Finished)
	require.Contains(t, get("/"), "slow-first")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.URL()+"/control", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "[]\n", get("/control"))
	http.DefaultClient.CloseIdleConnections()
}

func TestDownRefusesAndComesBack(t *testing.T) {
	s := simtest.Start(t)
	addr := s.Addr()
	hanging := make(chan reply, 1)
	go func() { hanging <- ask(context.Background(), s, "openai", "sim-hang", true) }()
	require.Eventually(t, func() bool { return s.Stats().InFlight == 1 }, soon, often)

	require.Equal(t, 200, post(t.Context(), s.URL()+"/control", `{"fault":"down","for":"1h"}`).status)
	require.ErrorIs(t, (<-hanging).err, syscall.ECONNRESET, "connections that were open are reset")
	require.ErrorIs(t, ask(t.Context(), s, "openai", "sim-ok", false).err, syscall.ECONNREFUSED)

	s.Clear()
	require.Eventually(t, func() bool { return ask(t.Context(), s, "openai", "sim-ok", false).status == 200 }, soon, often)
	require.Equal(t, addr, s.Addr())

	require.Error(t, ask(t.Context(), s, "openai", "sim-down-30ms", false).err)
	require.Eventually(t, func() bool { return ask(t.Context(), s, "openai", "sim-ok", false).status == 200 }, soon, often)
}

func TestRunEndsWithItsContext(t *testing.T) {
	s, err := sim.New(sim.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	hanging := make(chan reply, 1)
	go func() { hanging <- ask(context.Background(), s, "openai", "sim-hang", false) }()
	require.Eventually(t, func() bool { return s.Stats().InFlight == 1 }, soon, often)
	cancel()
	require.NoError(t, <-ended)
	require.Error(t, (<-hanging).err)
	require.NoError(t, s.Close())

	_, err = sim.New(sim.Config{Addr: "256.0.0.1:1"})
	require.Error(t, err)
}
