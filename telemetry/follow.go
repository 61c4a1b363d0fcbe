package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
)

// requestKey is what the series of a request depend on.
type requestKey struct {
	feature  string
	class    llm.Class
	servedBy llm.ServedBy
	fallback llm.FallbackMode
	code     llm.Code
}

// requestSeries are the attributes of requests that ended alike.
type requestSeries struct {
	count, fallback, rescued, exhausted []metric.AddOption
	time, firstToken                    []metric.RecordOption
}

func newRequestSeries(k requestKey) *requestSeries {
	feature := keyFeature.String(k.feature)
	end := append(present(keyServedBy, string(k.servedBy)), present(keyErrorType, string(k.code))...)
	end = append(end, feature)
	return &requestSeries{
		count:      adding(append([]attribute.KeyValue{keyClass.String(string(k.class))}, end...)...),
		fallback:   adding(feature, keyFallback.String(string(k.fallback)), keyServedBy.String(string(k.servedBy))),
		rescued:    adding(feature, keyOutcome.String("succeeded")),
		exhausted:  adding(feature, keyOutcome.String("failed")),
		time:       recording(end...),
		firstToken: recording(feature),
	}
}

// callKey is what the series of a call depend on.
type callKey struct {
	feature, provider, model, version string
	class                             llm.Outcome
}

// callSeries are the attributes of calls that ended alike.
type callSeries struct {
	count, failed                   []metric.AddOption
	time, firstChunk, input, output []metric.RecordOption
}

func (t *Telemetry) newCallSeries(k callKey) *callSeries {
	feature, provider, model := keyFeature.String(k.feature), keyProvider.String(k.provider), keyRequestModel.String(k.model)
	target := append([]attribute.KeyValue{keyOperation.String(operation), keyProviderName.String(t.cfg.ProviderName(k.provider)), model, feature, provider},
		present(keyResponseModel, k.version)...)
	with := func(more ...attribute.KeyValue) []metric.RecordOption {
		return recording(append(append([]attribute.KeyValue{}, target...), more...)...)
	}
	failed := present(keyErrorType, failure(k.class))
	return &callSeries{
		count: adding(feature, provider, model), failed: adding(append(failed, feature, provider, model)...),
		time: with(failed...), firstChunk: with(),
		input: with(keyTokenType.String("input")), output: with(keyTokenType.String("output")),
	}
}

// operation is what every feature does, in the conventions' word.
const operation = "chat"

// failure is the conventions' error.type of a call; empty for success.
func failure(o llm.Outcome) string {
	if o == llm.OutcomeOK {
		return ""
	}
	return string(o)
}

// RequestBegan begins the span of a request.
func (t *Telemetry) RequestBegan(ctx context.Context, req *llm.Request) context.Context {
	if t.tracer == nil {
		return ctx
	}
	return t.beginRequest(ctx, req)
}

// RequestEnded counts a request.
func (t *Telemetry) RequestEnded(ctx context.Context, req *llm.Request, e chain.Ending) {
	key := requestKey{feature: req.Feature, class: req.Class}
	firstToken := int64(0)
	if r := e.Response; r != nil {
		key.servedBy, key.fallback, firstToken = r.ServedBy, r.Fallback, r.Timing.FirstTokenMS
	} else {
		key.code = e.Error.Code
	}
	s := t.requests.get(key, newRequestSeries)
	t.requestCount.Add(ctx, 1, s.count...)
	t.requestTime.Record(ctx, e.Elapsed.Seconds(), s.time...)
	if firstToken > 0 {
		t.requestFirstToken.Record(ctx, inSeconds(firstToken), s.firstToken...)
	}
	if key.fallback != "" {
		t.fallbacks.Add(ctx, 1, s.fallback...)
	}
	t.failedOver(ctx, req, e.Attempts(), key.servedBy == llm.ServedByModel, s)
	if req.Tenant != "" {
		t.bill(ctx, req.Tenant, e.Attempts())
	}
	if t.tracer != nil {
		endRequest(ctx, req, &e)
	}
}

// failedOver counts the moves from one target to another.
func (t *Telemetry) failedOver(ctx context.Context, req *llm.Request, attempts []llm.Attempt, served bool, s *requestSeries) {
	moved := false
	for i := 1; i < len(attempts); i++ {
		from, to := &attempts[i-1], &attempts[i]
		if from.Provider == to.Provider && from.Model == to.Model {
			continue
		}
		moved = true
		t.failovers.Add(ctx, 1, t.call(req, from).failed...)
	}
	switch {
	case moved && served:
		t.failoverOutcomes.Add(ctx, 1, s.rescued...)
	case moved:
		t.failoverOutcomes.Add(ctx, 1, s.exhausted...)
	}
}

// bill counts a request and all its calls for its tenant.
func (t *Telemetry) bill(ctx context.Context, tenant string, attempts []llm.Attempt) {
	s := t.tenants.series(tenant)
	t.tenantRequests.Add(ctx, 1, s.total...)
	for i := range attempts {
		a := &attempts[i]
		if a.CostUSD > 0 {
			t.tenantCost.Add(ctx, a.CostUSD, s.total...)
		}
		if u := a.Usage; u != nil {
			if u.InputTokens != nil {
				t.tenantTokens.Add(ctx, *u.InputTokens, s.input...)
			}
			if u.OutputTokens != nil {
				t.tenantTokens.Add(ctx, *u.OutputTokens, s.output...)
			}
		}
	}
}

// AttemptBegan begins the span of a call.
func (t *Telemetry) AttemptBegan(ctx context.Context, _ *llm.Request, provider, model string) context.Context {
	if t.tracer == nil {
		return ctx
	}
	return t.beginCall(ctx, provider, model)
}

// AttemptEnded counts a call.
func (t *Telemetry) AttemptEnded(ctx context.Context, req *llm.Request, a *llm.Attempt) {
	s := t.call(req, a)
	t.callTime.Record(ctx, inSeconds(a.MS), s.time...)
	if a.FirstTokenMS > 0 {
		t.callFirstChunk.Record(ctx, inSeconds(a.FirstTokenMS), s.firstChunk...)
	}
	if u := a.Usage; u != nil {
		if u.InputTokens != nil {
			t.callTokens.Record(ctx, *u.InputTokens, s.input...)
		}
		if u.OutputTokens != nil {
			t.callTokens.Record(ctx, *u.OutputTokens, s.output...)
		}
	}
	if a.CostUSD > 0 {
		t.cost.Add(ctx, a.CostUSD, s.count...)
	}
	if a.Class == llm.OutcomeInvalidOutput {
		t.validation.Add(ctx, 1, s.count...)
	}
	if t.tracer != nil {
		endCall(ctx, req, a)
	}
}

func (t *Telemetry) call(req *llm.Request, a *llm.Attempt) *callSeries {
	return t.calls.get(callKey{req.Feature, a.Provider, a.Model, t.versions.name(a.Provider, a.Model, a.ModelVersion), a.Class}, t.newCallSeries)
}

// limitKey is what the series of an exceeded limit depend on.
type limitKey struct {
	feature, limit string
	code           llm.Code
}

// Observe counts the one kind of event that no ending shows.
func (t *Telemetry) Observe(e chain.Event) {
	if e.Name != chain.EventLimitExceeded {
		return
	}
	options := t.limits.get(limitKey{e.Feature, e.Limit, e.Code}, func(k limitKey) []metric.AddOption {
		return adding(keyFeature.String(k.feature), keyLimit.String(k.limit), keyErrorType.String(string(k.code)))
	})
	t.overLimit.Add(context.Background(), 1, options...)
}

func inSeconds(ms int64) float64 { return (time.Duration(ms) * time.Millisecond).Seconds() }
