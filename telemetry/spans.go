package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
)

// Attributes of spans alone: they may have as many values as there are
// requests.
const (
	keyRequestID = attribute.Key("llmbus.request.id")
	keyAttempts  = attribute.Key("llmbus.attempts")
	keyDegraded  = attribute.Key("llmbus.degraded")
	keyBreaker   = attribute.Key("llmbus.breaker")
	keyCost      = attribute.Key("llmbus.cost.usd")
)

// parent is a traceparent header. What is malformed begins a trace of its own.
type parent string

var _ propagation.TextMapCarrier = parent("")

// Get returns the header if it is asked for.
func (p parent) Get(key string) string {
	if key == "traceparent" {
		return string(p)
	}
	return ""
}

// Set does nothing: a parent is only read.
func (parent) Set(string, string) {}

// Keys lists the one header.
func (parent) Keys() []string { return []string{"traceparent"} }

func (t *Telemetry) beginRequest(ctx context.Context, req *llm.Request) context.Context {
	if req.TraceParent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, parent(req.TraceParent))
	}
	kind := trace.SpanKindServer
	if req.Job {
		kind = trace.SpanKindConsumer
	}
	ctx, _ = t.tracer.Start(ctx, "llmbus "+req.Feature, trace.WithSpanKind(kind))
	return ctx
}

func endRequest(ctx context.Context, req *llm.Request, e *chain.Ending) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	defer span.End()
	span.SetAttributes(semconv.MessagingSystemKey.String("nats"), keyFeature.String(req.Feature), keyClass.String(string(req.Class)),
		keyRequestID.String(req.ID), keyAttempts.Int(len(e.Attempts())))
	if req.Tenant != "" {
		span.SetAttributes(keyTenant.String(hash(req.Tenant)))
	}
	if e.Error != nil {
		fail(span, string(e.Error.Code))
		span.SetAttributes(keyDegraded.Bool(e.Error.Degraded))
		return
	}
	r := e.Response
	span.SetAttributes(keyServedBy.String(string(r.ServedBy)), keyProvider.String(r.Provider), keyRequestModel.String(r.Model),
		keyCost.Float64(r.CostUSD), keyDegraded.Bool(r.Degraded))
	span.SetAttributes(present(keyFallback, string(r.Fallback))...)
}

func (t *Telemetry) beginCall(ctx context.Context, provider, model string) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx // most requests: no span for each of their calls
	}
	ctx, _ = t.tracer.Start(ctx, operation+" "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		keyOperation.String(operation), keyProviderName.String(t.cfg.ProviderName(provider)), keyProvider.String(provider), keyRequestModel.String(model)))
	return ctx
}

func endCall(ctx context.Context, req *llm.Request, a *llm.Attempt) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	defer span.End()
	span.SetAttributes(keyFeature.String(req.Feature), keyBreaker.String(a.Breaker), keyCost.Float64(a.CostUSD), semconv.GenAIRequestStream(req.Stream))
	span.SetAttributes(present(keyResponseModel, a.ModelVersion)...)
	if a.HTTPStatus > 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(a.HTTPStatus))
	}
	if a.FirstTokenMS > 0 {
		span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(inSeconds(a.FirstTokenMS)))
	}
	if u := a.Usage; u != nil {
		if u.InputTokens != nil {
			span.SetAttributes(semconv.GenAIUsageInputTokens(int(*u.InputTokens)))
		}
		if u.OutputTokens != nil {
			span.SetAttributes(semconv.GenAIUsageOutputTokens(int(*u.OutputTokens)))
		}
	}
	if class := failure(a.Class); class != "" {
		fail(span, class)
	}
}

// fail marks a span with the class of an error, never with its text.
func fail(span trace.Span, class string) {
	span.SetAttributes(keyErrorType.String(class))
	span.SetStatus(codes.Error, class)
}
