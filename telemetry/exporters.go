package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// said logs the failure of an exporter once, and its recovery. Without it the
// SDK would write each failure to the process's standard error.
type said struct {
	what   string
	log    *slog.Logger
	broken atomic.Bool
}

func (s *said) say(err error) {
	switch {
	case err != nil && !s.broken.Swap(true):
		s.log.Warn(s.what+" cannot be sent and are dropped meanwhile", "error", err)
	case err == nil && s.broken.Swap(false):
		s.log.Info(s.what + " are sent again")
	}
}

// pushing sends metrics.
type pushing struct {
	sdkmetric.Exporter
	said
}

// Export never fails.
func (p *pushing) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	p.say(p.Exporter.Export(ctx, m))
	return nil
}

// sending sends spans.
type sending struct {
	sdktrace.SpanExporter
	said
}

// ExportSpans never fails.
func (s *sending) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.say(s.SpanExporter.ExportSpans(ctx, spans))
	return nil
}
