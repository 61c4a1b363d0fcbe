package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Log adds trace_id to what is logged within a sampled trace, so that a log line
// leads to its trace.
func Log(log *slog.Logger) *slog.Logger { return slog.New(traceLog{log.Handler()}) }

type traceLog struct{ slog.Handler }

// Handle passes the record on.
func (h traceLog) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.IsSampled() {
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapping.
func (h traceLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceLog{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapping.
func (h traceLog) WithGroup(name string) slog.Handler { return traceLog{h.Handler.WithGroup(name)} }
