package app_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// metricsURL is where a worker's log says that its metrics are.
func metricsURL(t *testing.T, p *process) string {
	t.Helper()
	pattern, url := regexp.MustCompile(`url=(http://\S+/metrics)`), ""
	require.Eventually(t, func() bool {
		if m := pattern.FindStringSubmatch(p.log.String()); m != nil {
			url = m[1]
		}
		return url != ""
	}, patience, tick)
	return url
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return string(body)
}

// scraped waits until the metrics say something.
func scraped(t *testing.T, url, pattern string) string {
	t.Helper()
	text, found := "", regexp.MustCompile("(?m)^"+pattern+"$")
	require.Eventually(t, func() bool {
		text = scrape(t, url)
		return found.MatchString(text)
	}, patience, 20*tick, pattern)
	return text
}

func TestMetrics(t *testing.T) {
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	env := joining(srv)
	env.Metrics = "127.0.0.1:0"
	p := start(t, env, overSim(provider, "sim-status-503"))
	url, nc := metricsURL(t, p), srv.Dial()
	scraped(t, url, `llmbus_worker_info\{llmbus_state="joined",llmbus_version="1.2.3",llmbus_worker="w-...."\} 1`)

	_, err := ask(t, nc, "default", "hello")
	require.ErrorIs(t, err, llm.ErrUnavailable)
	_, err = ask(t, nc, "nosuch", "hello")
	require.ErrorIs(t, err, llm.ErrUnknownFeature)
	scraped(t, url, `llmbus_worker_messages_total\{error_type="unknown_feature"\} 1`)
	text := scraped(t, url, `llmbus_breaker_state\{gen_ai_request_model="sim-status-503",llmbus_provider="p"\} 3`)
	require.Contains(t, text, `llmbus_requests_total{error_type="unavailable",llmbus_class="interactive",llmbus_feature="default"}`)
	require.Contains(t, text, `gen_ai_provider_name="openai"`)
	scraped(t, url, `llmbus_breaker_transitions_total\{gen_ai_request_model="sim-status-503",llmbus_provider="p",llmbus_state="open"\} 1`)

	_, err = buckets(t, nc).Flags.Put(t.Context(), "feature.default", []byte("off"))
	require.NoError(t, err)
	scraped(t, url, `llmbus_switches_off\{llmbus_scope="feature"\} 1`)
	scraped(t, url, `llmbus_switch_flips_total\{llmbus_scope="feature",llmbus_state="off"\} 1`)

	require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: subjects.Job("default"), Data: []byte("no JSON"), Header: nats.Header{subjects.HeaderRequestID: {"j"}}}))
	text = scraped(t, url, `llmbus_jobs_dead_letters 1`)
	require.NotContains(t, text, "hello")
	p.ended(t)
	require.NotContains(t, p.log.String(), "level=ERROR")
	_, err = http.Get(url)
	require.Error(t, err, "the listener ends with the worker")
}

func TestMetricsNeedTheirAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	env := joining(natstest.ListenServer(t))
	env.Metrics = taken.Addr().String()
	p := launch(t, env, echoConfig)
	require.ErrorContains(t, p.result(t), "LLMBUS_METRICS: listen tcp "+env.Metrics)
}

func TestObservabilityRefusals(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, tc := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{"LLMBUS_METRICS": "9090"}, "LLMBUS_METRICS: must be host:port, such as 127.0.0.1:9090"},
		{map[string]string{"LLMBUS_METRICS_TENANTS": "0"}, "LLMBUS_METRICS_TENANTS: must be 1 to 900, not 0"},
		{map[string]string{"LLMBUS_TRACE_SAMPLE": "2", endpoint: "http://127.0.0.1:4318"}, "LLMBUS_TRACE_SAMPLE: must be 0 to 1, not 2"},
		{map[string]string{"LLMBUS_TRACE_SAMPLE": "0.5"}, "LLMBUS_TRACE_SAMPLE: has no effect without OTEL_EXPORTER_OTLP_ENDPOINT; set it, or remove this"},
		{map[string]string{"LLMBUS_TRACE_SAMPLE": "0.5", "OTEL_TRACES_SAMPLER": "always_on", endpoint: "http://127.0.0.1:4318"},
			"LLMBUS_TRACE_SAMPLE: cannot be set together with OTEL_TRACES_SAMPLER; keep one"},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, `OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf, not "grpc"`},
		{map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, `OTEL_METRICS_EXPORTER: must be otlp or none, not "prometheus"; LLMBUS_METRICS is for Prometheus`},
	} {
		t.Run(tc.want, func(t *testing.T) {
			for name, value := range tc.set {
				t.Setenv(name, value)
			}
			_, err := app.ReadEnvironment()
			require.EqualError(t, err, tc.want)
		})
	}
}

// TestMetricsOfAGatewayAlone have nothing of a worker. Where others than this
// machine may come, the door has none.
func TestMetricsOfAGatewayAlone(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := joining(srv)
	env.HTTP = "127.0.0.1:0"
	out, text := gatewayAlone(t, env), ""
	require.Eventually(t, func() bool {
		if url := regexp.MustCompile(`http://\S+/`).FindString(out.String()); url != "" {
			text = scrape(t, url+"metrics")
		}
		return text != ""
	}, patience, tick)
	require.Contains(t, text, "target_info{")
	require.NotContains(t, text, "llmbus_worker_info")

	env = joining(srv)
	env.HTTP, env.HTTPKeys = "0.0.0.0:0", "acme sha256:"+strings.Repeat("0", 64)
	out = gatewayAlone(t, env)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "/v1") }, patience, tick)
	port := regexp.MustCompile(`:(\d+)/v1`).FindStringSubmatch(out.String())[1]
	resp, err := http.Get("http://127.0.0.1:" + port + "/metrics")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

// gatewayAlone runs one until the test ends and returns what it prints.
func gatewayAlone(t *testing.T, env *app.Environment) *lines {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, end := &lines{}, make(chan error, 1)
	go func() { end <- app.New(env, app.Options{Version: "1.2.3", Out: out}).RunGateway(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-end)
	})
	return out
}

// TestMetricsDuringAnOutage come all the same, without what nobody knows.
func TestMetricsDuringAnOutage(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := joining(srv)
	env.Metrics, env.ShutdownGrace = "127.0.0.1:0", 0
	p := start(t, env, echoConfig)
	url := metricsURL(t, p)
	scraped(t, url, `llmbus_jobs_pending 0`)
	srv.Stop()
	require.Eventually(t, func() bool { // figures that are a moment old are shared
		text := scrape(t, url)
		return !strings.Contains(text, "llmbus_jobs_pending") && strings.Contains(text, "llmbus_worker_slots 256")
	}, patience, 20*tick)
	srv.Restart()
	scraped(t, url, `llmbus_jobs_pending 0`)
	p.ended(t)
}
