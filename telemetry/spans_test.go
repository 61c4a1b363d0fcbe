package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/telemetry"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	sampled = "00-" + traceID + "-b7ad6b7169203331-01"
	dropped = "00-" + traceID + "-b7ad6b7169203331-00"
)

// kept keeps spans until the test looks at them.
type kept struct{ tracetest.InMemoryExporter }

// Shutdown keeps what it has.
func (*kept) Shutdown(context.Context) error { return nil }

// traced asks once and returns the spans, by name.
func traced(t *testing.T, cfg telemetry.Config, req *llm.Request, fakes ...*fake.Provider) map[string]tracetest.SpanStub {
	t.Helper()
	spans := &kept{}
	cfg.Spans = spans
	tel, err := telemetry.New(cfg)
	require.NoError(t, err)
	_, _ = route(t, tel, nil, fakes...).Complete(t.Context(), req)
	require.NoError(t, tel.Shutdown(t.Context()))
	byName := map[string]tracetest.SpanStub{}
	for _, s := range spans.GetSpans() {
		require.NotContains(t, fmt.Sprintf("%+v", s), secret, "content in a span")
		name := s.Name
		if s.SpanKind == trace.SpanKindClient {
			name += " " + valueOf(s, "llmbus.provider")
		}
		byName[name] = s
	}
	return byName
}

func valueOf(s tracetest.SpanStub, key attribute.Key) string {
	for _, kv := range s.Attributes {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

func TestSpansFollowTheCallersTrace(t *testing.T) {
	spans := traced(t, telemetry.Config{}, ask(func(r *llm.Request) { r.TraceParent, r.Tenant = sampled, "acme" }),
		fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New(answers()))
	require.Len(t, spans, 3)
	request, first, second := spans["llmbus f"], spans["chat m a"], spans["chat m b"]
	for _, s := range spans {
		require.Equal(t, traceID, s.SpanContext.TraceID().String())
	}
	require.Equal(t, "b7ad6b7169203331", request.Parent.SpanID().String())
	require.Equal(t, request.SpanContext.SpanID(), first.Parent.SpanID())
	require.Equal(t, request.SpanContext.SpanID(), second.Parent.SpanID())
	require.Equal(t, []trace.SpanKind{trace.SpanKindServer, trace.SpanKindClient, trace.SpanKindClient}, []trace.SpanKind{request.SpanKind, first.SpanKind, second.SpanKind})
	require.Equal(t, []codes.Code{codes.Unset, codes.Error, codes.Unset}, []codes.Code{request.Status.Code, first.Status.Code, second.Status.Code})
	for key, want := range map[attribute.Key]string{
		"messaging.system": "nats", "llmbus.feature": "f", "llmbus.class": "interactive", "llmbus.request.id": "r1", "llmbus.attempts": "2",
		"llmbus.tenant": "822b33ad87c1", "llmbus.served_by": "model", "gen_ai.request.model": "m", "llmbus.cost.usd": "0.002",
	} {
		require.Equal(t, want, valueOf(request, key), key)
	}
	for key, want := range map[attribute.Key]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "b", "gen_ai.usage.input_tokens": "1000", "gen_ai.usage.output_tokens": "500",
		"http.response.status_code": "200", "llmbus.breaker": "closed", "gen_ai.request.stream": "false",
	} {
		require.Equal(t, want, valueOf(second, key), key)
	}
	require.Equal(t, "connect", valueOf(first, "error.type"))
}

func TestWhatFailedIsMarkedInItsSpan(t *testing.T) {
	spans := traced(t, telemetry.Config{}, ask(func(r *llm.Request) { r.TraceParent, r.Job = sampled, true }), fake.New(fake.FailsWith(llm.OutcomeConnect)))
	request := spans["llmbus f"]
	require.Equal(t, trace.SpanKindConsumer, request.SpanKind, "a job")
	require.Equal(t, codes.Error, request.Status.Code)
	require.Equal(t, "unavailable", valueOf(request, "error.type"))
}

func TestSampling(t *testing.T) {
	for name, tc := range map[string]struct {
		sample *float64
		parent string
		want   int
	}{
		"the caller wants it, we would not": {new(0.0), sampled, 2},
		"the caller does not, we would":     {new(1.0), dropped, 0},
		"nobody decided, all":               {new(1.0), "", 2},
		"nobody decided, none":              {new(0.0), "", 0},
		"a parent that is none":             {new(1.0), "00-garbage", 2},
	} {
		t.Run(name, func(t *testing.T) {
			spans := traced(t, telemetry.Config{Sample: tc.sample}, ask(func(r *llm.Request) { r.TraceParent = tc.parent }), fake.New())
			require.Len(t, spans, tc.want)
		})
	}
}

// TestSamplerOfTheEnvironment leaves the choice to OTEL_TRACES_SAMPLER.
func TestSamplerOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	require.Empty(t, traced(t, telemetry.Config{}, ask(), fake.New()))
}

// TestExemplarsLeadToTraces reads the format that has them.
func TestExemplarsLeadToTraces(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{Spans: &kept{}})
	_, err := route(t, tel, nil, fake.New()).Complete(t.Context(), ask(func(r *llm.Request) { r.TraceParent = sampled }))
	require.NoError(t, err)
	r, rec := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
	r.Header.Set("Accept", "application/openmetrics-text")
	tel.Handler().ServeHTTP(rec, r)
	require.Regexp(t, `llmbus_request_duration_seconds_bucket\{.*\} 1 # \{.*trace_id="`+traceID+`"`, rec.Body.String())
}

// broken fails while err is set.
type broken struct {
	kept
	err error
}

func (b *broken) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return errors.Join(b.err, b.InMemoryExporter.ExportSpans(ctx, spans))
}

// TestAnExporterThatFails is heard of once, and no request notices.
func TestAnExporterThatFails(t *testing.T) {
	var log strings.Builder
	tel, err := telemetry.New(telemetry.Config{Spans: &broken{err: errors.New("no route")}, Sample: new(1.0), Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	router := route(t, tel, nil, fake.New())
	for range 2000 { // several batches
		_, err = router.Complete(t.Context(), ask())
		require.NoError(t, err)
	}
	require.NoError(t, tel.Shutdown(t.Context()))
	require.Equal(t, 1, strings.Count(log.String(), `msg="traces cannot be sent and are dropped meanwhile" error="no route`))
}

func TestConfigRefusals(t *testing.T) {
	for want, cfg := range map[string]telemetry.Config{
		"telemetry: Tenants must be 1 to 900": {Tenants: 901},
		"telemetry: Sample must be 0 to 1":    {Sample: new(1.5)},
	} {
		_, err := telemetry.New(cfg)
		require.EqualError(t, err, want)
	}
}
