package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/llmbus/llmbus/chain"
)

// scope names this program as the maker of its metrics and spans.
const scope = "github.com/llmbus/llmbus"

// maxSeries bounds the series of each metric, whatever happens; what is beyond
// goes into one that is marked otel_metric_overflow. A fleet of 200 features with
// three targets each stays below it.
const maxSeries = 4000

// Telemetry makes metrics and traces. It may be used by many goroutines at once.
type Telemetry struct {
	cfg      Config
	registry *prometheus.Registry
	meters   *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider // nil without Spans
	tracer   trace.Tracer             // nil without Spans

	*instruments
	requests *table[requestKey, *requestSeries]
	calls    *table[callKey, *callSeries]
	http     *table[httpKey, *httpSeries]
	limits   *table[limitKey, []metric.AddOption]
	versions versions
	tenants  *tenants
}

var (
	_ chain.Follower = (*Telemetry)(nil)
	_ chain.Observer = (*Telemetry)(nil)
)

// New makes a Telemetry. Shutdown must be called in the end.
func New(cfg Config) (*Telemetry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t := &Telemetry{
		cfg: cfg, registry: prometheus.NewRegistry(), tenants: newTenants(cfg.Tenants),
		requests: newTable[requestKey, *requestSeries](maxSeries), calls: newTable[callKey, *callSeries](maxSeries),
		http: newTable[httpKey, *httpSeries](maxSeries), limits: newTable[limitKey, []metric.AddOption](maxSeries),
		versions: versions{seen: map[[2]string]map[string]bool{}},
	}
	res, err := cfg.resource()
	if err != nil {
		return nil, err
	}
	if err := t.newMeters(res); err != nil {
		return nil, err
	}
	if cfg.Spans != nil {
		t.traces = sdktrace.NewTracerProvider(t.cfg.traceOptions(res)...)
		t.tracer = t.traces.Tracer(scope, trace.WithInstrumentationVersion(cfg.Version))
	}
	return t, nil
}

// resource says who sends; OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win.
func (c *Config) resource() (*resource.Resource, error) {
	res, err := resource.New(context.Background(), resource.WithAttributes(semconv.ServiceName("llmbus"), semconv.ServiceVersion(c.Version),
		semconv.ServiceInstanceID(c.Worker)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return res, nil
}

func (t *Telemetry) newMeters(res *resource.Resource) error {
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	pulled, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("prometheus exporter: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(pulled), sdkmetric.WithCardinalityLimit(maxSeries)}
	if t.cfg.Push != nil {
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&pushing{Exporter: t.cfg.Push, said: said{what: "metrics", log: t.cfg.Log}})))
	}
	t.meters = sdkmetric.NewMeterProvider(options...)
	t.instruments, err = newInstruments(t.meters.Meter(scope))
	if err != nil {
		return err
	}
	if t.cfg.Read == nil {
		return nil
	}
	return t.observe(t.meters.Meter(scope))
}

// traceOptions bound what waits for an exporter: what does not fit is dropped.
func (c *Config) traceOptions(res *resource.Resource) []sdktrace.TracerProviderOption {
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(res),
		sdktrace.WithBatcher(&sending{SpanExporter: c.Spans, said: said{what: "traces", log: c.Log}}),
	}
	if c.Sample != nil { // otherwise the SDK reads OTEL_TRACES_SAMPLER
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*c.Sample))))
	}
	return options
}

// Handler serves the metrics to Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// Shutdown sends what is left until ctx ends. It must be called once, when
// nothing is followed any more.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	if t.traces != nil {
		errs = append(errs, t.traces.Shutdown(ctx))
	}
	return errors.Join(append(errs, t.meters.Shutdown(ctx))...)
}
