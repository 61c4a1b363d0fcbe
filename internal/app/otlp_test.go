package app_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/subjects"
)

// collector takes what is sent over OTLP.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   map[string][]string // names by trace
	metrics map[string]bool
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string][]string{}, metrics: map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			c.take(r.URL.Path, body)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(path string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var traces coltraces.ExportTraceServiceRequest
	var metrics colmetrics.ExportMetricsServiceRequest
	switch {
	case path == "/v1/traces" && proto.Unmarshal(body, &traces) == nil:
		for _, resource := range traces.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					id := hex.EncodeToString(s.TraceId)
					c.spans[id] = append(c.spans[id], s.Name)
				}
			}
		}
	case path == "/v1/metrics" && proto.Unmarshal(body, &metrics) == nil:
		for _, resource := range metrics.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.metrics[m.Name] = true
				}
			}
		}
	}
}

// TestTracesAndMetricsOverOTLP follows the trace of a caller through a request
// and a job.
func TestTracesAndMetricsOverOTLP(t *testing.T) {
	const request, job = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
	srv, c := natstest.ListenServer(t), newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("LLMBUS_NATS_URL", srv.ClientURL())
	env, err := app.ReadEnvironment()
	require.NoError(t, err)
	p := start(t, env, echoConfig)
	nc := srv.Dial()

	cl, err := client.New(nc, client.WithTimeout(patience))
	require.NoError(t, err)
	req := question("default", "hello")
	req.TraceParent = "00-" + request + "-b7ad6b7169203331-01"
	_, err = cl.Complete(t.Context(), req)
	require.NoError(t, err)
	header := nats.Header{subjects.HeaderRequestID: {"j"}, subjects.HeaderTraceParent: {"00-" + job + "-b7ad6b7169203331-01"}}
	require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: subjects.Job("default"), Data: []byte(`{"prompt":"hello"}`), Header: header}))

	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.spans[request]) == 2 && len(c.spans[job]) == 2
	}, patience, tick)
	p.ended(t) // metrics are sent at the end at the latest
	require.ElementsMatch(t, []string{"llmbus default", "chat echo"}, c.spans[request])
	require.ElementsMatch(t, []string{"llmbus default", "chat echo"}, c.spans[job])
	require.True(t, c.metrics["gen_ai.client.operation.duration"])
	require.True(t, c.metrics["llmbus.worker.info"])
	require.Contains(t, p.log.String(), "trace_id="+request)
}

// TestOneTraceFromDoorToModel asks over HTTP.
func TestOneTraceFromDoorToModel(t *testing.T) {
	const id = "2af7651916cd43dd8448eb211c80319c"
	srv, c := natstest.ListenServer(t), newCollector(t)
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_BSP_SCHEDULE_DELAY": "10", "LLMBUS_NATS_URL": srv.ClientURL(), "LLMBUS_HTTP": "127.0.0.1:0"} {
		t.Setenv(name, value)
	}
	env, err := app.ReadEnvironment()
	require.NoError(t, err)
	p := start(t, env, echoConfig)
	url := regexp.MustCompile(`http://\S+/v1`).FindString(p.out.String())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(`{"model":"default","messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("traceparent", "00-"+id+"-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.spans[id]) == 3
	}, patience, tick)
	require.ElementsMatch(t, []string{"POST /v1/chat/completions", "llmbus default", "chat echo"}, c.spans[id])
	text := scrape(t, strings.TrimSuffix(url, "v1")+"metrics")
	require.Contains(t, text, `http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",http_route="/v1/chat/completions",url_scheme="http"} 1`)
	require.Contains(t, text, `llmbus_requests_total{`)
	p.ended(t)
}

// TestAnUnreachableCollector slows nobody down, neither a request nor the end.
func TestAnUnreachableCollector(t *testing.T) {
	srv := natstest.ListenServer(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	t.Setenv("LLMBUS_NATS_URL", srv.ClientURL())
	env, err := app.ReadEnvironment()
	require.NoError(t, err)
	p := start(t, env, echoConfig)
	_, err = ask(t, srv.Dial(), "default", "hello")
	require.NoError(t, err)
	p.ended(t)
	require.Contains(t, p.log.String(), "cannot be sent and are dropped meanwhile")
	require.NotContains(t, p.log.String(), "hello")
}
