package telemetry

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// headerTraceParent is as net/http spells it.
const headerTraceParent = "Traceparent"

// HTTP measures what passes a handler and begins its span. The request that the
// handler gets has that span as its traceparent, to be handed on.
func (t *Telemetry) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen, aborted := time.Now(), &seen{ResponseWriter: w, status: http.StatusOK}, true
		if t.tracer != nil {
			r = t.beginHTTP(r)
		}
		defer func() { t.endHTTP(r, seen.status, aborted, time.Since(began)) }()
		next.ServeHTTP(seen, r)
		aborted = false
	})
}

// beginHTTP begins the span of a request.
func (t *Telemetry) beginHTTP(r *http.Request) *http.Request {
	ctx := propagation.TraceContext{}.Extract(r.Context(), parent(r.Header.Get(headerTraceParent)))
	ctx, _ = t.tracer.Start(ctx, method(r), trace.WithSpanKind(trace.SpanKindServer))
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	return r.WithContext(ctx)
}

// endHTTP counts a request. A handler that panicked cut the connection, so that
// its status may be good.
func (t *Telemetry) endHTTP(r *http.Request, status int, aborted bool, took time.Duration) {
	key := httpKey{method(r), route(r), status, aborted}
	s := t.http.get(key, newHTTPSeries)
	t.httpTime.Record(r.Context(), took.Seconds(), s.time...)
	span := trace.SpanFromContext(r.Context())
	if t.tracer == nil || !span.IsRecording() {
		return
	}
	defer span.End()
	if key.route != "" {
		span.SetName(key.method + " " + key.route)
	}
	span.SetAttributes(s.attributes...)
	if status >= 500 || aborted {
		span.SetStatus(codes.Error, "")
	}
}

// httpKey is what the series of an HTTP request depend on.
type httpKey struct {
	method, route string
	status        int
	aborted       bool
}

// httpSeries are the attributes of HTTP requests that ended alike.
type httpSeries struct {
	attributes []attribute.KeyValue
	time       []metric.RecordOption
}

func newHTTPSeries(k httpKey) *httpSeries {
	attributes := append([]attribute.KeyValue{keyMethod.String(k.method), keyStatus.Int(k.status), keyScheme.String("http")}, present(keyRoute, k.route)...)
	if k.aborted {
		attributes = append(attributes, keyErrorType.String("aborted"))
	}
	return &httpSeries{attributes, recording(attributes...)}
}

// method is the request's, if it is one of the usual.
func method(r *http.Request) string {
	usual := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
	if !slices.Contains(usual, r.Method) {
		return "_OTHER"
	}
	return r.Method
}

// route is the pattern that matched, without its method; empty for none.
func route(r *http.Request) string {
	if _, path, ok := strings.Cut(r.Pattern, " "); ok {
		return path
	}
	return r.Pattern
}

// seen remembers the status of a response.
type seen struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader remembers the first final status.
func (s *seen) WriteHeader(status int) {
	if !s.sent && status >= 200 {
		s.status, s.sent = status, true
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (s *seen) Write(p []byte) (int, error) {
	s.sent = true
	return s.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController what is below.
func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
