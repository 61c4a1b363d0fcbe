package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"

	"github.com/llmbus/llmbus/telemetry"
)

// defaultSample is the share of traces that are made where neither the caller
// nor the environment has decided.
const defaultSample = 0.01

// otlp are the standard variables of OpenTelemetry that decide whether
// something is sent. The exporters read the rest, such as
// OTEL_EXPORTER_OTLP_HEADERS, themselves.
type otlp struct {
	Disabled        bool   `envconfig:"OTEL_SDK_DISABLED"`
	Endpoint        string `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	TracesEndpoint  string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`
	MetricsEndpoint string `envconfig:"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"`
	Protocol        string `envconfig:"OTEL_EXPORTER_OTLP_PROTOCOL"`
	TracesProtocol  string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"`
	MetricsProtocol string `envconfig:"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"`
	TracesExporter  string `envconfig:"OTEL_TRACES_EXPORTER"`
	MetricsExporter string `envconfig:"OTEL_METRICS_EXPORTER"`
	Sampler         string `envconfig:"OTEL_TRACES_SAMPLER"`
}

const (
	overHTTP   = "http/protobuf"
	exportOTLP = "otlp"
	exportNone = "none"
)

// sendsTraces reports whether spans are made.
func (o *otlp) sendsTraces() bool {
	return !o.Disabled && o.TracesExporter != exportNone && cmp.Or(o.TracesEndpoint, o.Endpoint) != ""
}

// sendsMetrics reports whether metrics are sent beside what Prometheus reads.
func (o *otlp) sendsMetrics() bool {
	return !o.Disabled && o.MetricsExporter != exportNone && cmp.Or(o.MetricsEndpoint, o.Endpoint) != ""
}

// observabilityProblems lists what cannot apply, naming the variable.
func (e *Environment) observabilityProblems() []error {
	var errs []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	o := &e.otlp
	for name, protocol := range map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": o.Protocol, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": o.TracesProtocol, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": o.MetricsProtocol} {
		refuse(protocol != "" && protocol != overHTTP, "%s: must be %s, not %q", name, overHTTP, protocol)
	}
	for name, exporter := range map[string]string{"OTEL_TRACES_EXPORTER": o.TracesExporter, "OTEL_METRICS_EXPORTER": o.MetricsExporter} {
		refuse(!slices.Contains([]string{"", exportOTLP, exportNone}, exporter), "%s: must be otlp or none, not %q; LLMBUS_METRICS is for Prometheus", name, exporter)
	}
	if e.Metrics != "" {
		_, port, err := net.SplitHostPort(e.Metrics)
		refuse(err != nil || port == "", "LLMBUS_METRICS: must be host:port, such as 127.0.0.1:9090")
	}
	refuse(e.MetricsTenants < 1 || e.MetricsTenants > telemetry.MaxTenants, "LLMBUS_METRICS_TENANTS: must be 1 to %d, not %d", telemetry.MaxTenants, e.MetricsTenants)
	if s := e.TraceSample; s != nil {
		refuse(!(*s >= 0 && *s <= 1), "LLMBUS_TRACE_SAMPLE: must be 0 to 1, not %v", *s)
		refuse(o.Sampler != "", "LLMBUS_TRACE_SAMPLE: cannot be set together with OTEL_TRACES_SAMPLER; keep one")
		refuse(!o.sendsTraces(), "LLMBUS_TRACE_SAMPLE: has no effect without OTEL_EXPORTER_OTLP_ENDPOINT; set it, or remove this")
	}
	return errs
}

// sample is the share of traces; nil leaves it to the SDK.
func (e *Environment) sample() *float64 {
	if e.TraceSample == nil && e.otlp.Sampler == "" {
		return new(defaultSample)
	}
	return e.TraceSample
}

// exporters adds what the environment asks for to a configuration.
func (e *Environment) exporters(ctx context.Context, c *telemetry.Config) error {
	if e.otlp.sendsTraces() {
		spans, err := otlptracehttp.New(ctx)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
		c.Spans, c.Sample = spans, e.sample()
	}
	if e.otlp.sendsMetrics() {
		push, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
		c.Push = push
	}
	return nil
}
