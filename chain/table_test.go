package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

// failure makes one of any class.
func failure(outcome llm.Outcome, detail provider.Detail, retryAfter ...time.Duration) *provider.Failure {
	f := &provider.Failure{Outcome: outcome, Detail: detail, Status: 500}
	if len(retryAfter) > 0 {
		f.RetryAfter = &retryAfter[0]
	}
	return f
}

// The failure table, row by row: target a fails for ever, target b is well.
// a may be called twice; what differs is how often it is, and whether b is.
func TestFailureTable(t *testing.T) {
	type wants struct {
		a, b  int
		code  llm.Code // empty: b answers
		trips bool
	}
	second := time.Second
	for _, row := range []struct {
		name    string
		fail    *provider.Failure
		tune    func(*chain.Feature)
		request func(*llm.Request)
		want    wants
	}{
		{name: "connect", fail: failure(llm.OutcomeConnect, ""), want: wants{a: 2, b: 1, trips: true}},
		{name: "unavailable", fail: failure(llm.OutcomeUnavailable, ""), want: wants{a: 2, b: 1, trips: true}},
		{name: "conflict is neutral", fail: failure(llm.OutcomeUnavailable, provider.DetailNeutral), want: wants{a: 2, b: 1}},
		{name: "challenge page", fail: failure(llm.OutcomeUnavailable, provider.DetailSamePath), want: wants{a: 1, b: 1, trips: true}},
		{name: "time-out: the next target first", fail: failure(llm.OutcomeTimeout, ""), want: wants{a: 1, b: 1, trips: true}},
		{name: "first token late", fail: failure(llm.OutcomeFirstTokenTimeout, ""), want: wants{a: 1, b: 1, trips: true}},
		{name: "idle", fail: failure(llm.OutcomeIdleTimeout, ""), want: wants{a: 1, b: 1, trips: true}},
		{name: "overloaded: once again", fail: failure(llm.OutcomeOverloaded, ""),
			tune: func(f *chain.Feature) { f.Targets[0].Attempts = 5 }, want: wants{a: 2, b: 1, trips: true}},
		{name: "the provider forbids the same call", fail: &provider.Failure{Outcome: llm.OutcomeUnavailable, NoRetry: true}, want: wants{a: 1, b: 1, trips: true}},
		{name: "rate limit, interactive", fail: failure(llm.OutcomeRateLimited, "", second), want: wants{a: 1, b: 1}},
		{name: "rate limit, background waits", fail: failure(llm.OutcomeRateLimited, "", second),
			request: func(r *llm.Request) { r.Class = llm.ClassBackground }, want: wants{a: 2, b: 1}},
		{name: "rate limit, policy waits", fail: failure(llm.OutcomeRateLimited, "", second),
			tune: func(f *chain.Feature) { f.OnRateLimit = chain.RateLimitWait }, want: wants{a: 2, b: 1}},
		{name: "rate limit without a wait", fail: failure(llm.OutcomeRateLimited, ""),
			tune: func(f *chain.Feature) { f.OnRateLimit = chain.RateLimitWait }, want: wants{a: 2, b: 1}},
		{name: "rate limit longer than the deadline", fail: failure(llm.OutcomeRateLimited, "", time.Minute),
			tune: func(f *chain.Feature) { f.OnRateLimit = chain.RateLimitWait }, want: wants{a: 1, b: 1}},
		{name: "rate limit, policy fails", fail: failure(llm.OutcomeRateLimited, "", second),
			tune: func(f *chain.Feature) { f.OnRateLimit = chain.RateLimitFail }, want: wants{a: 1, code: llm.CodeRateLimited}},
		{name: "one request over the limit", fail: failure(llm.OutcomeRateLimited, provider.DetailNeverFits),
			request: func(r *llm.Request) { r.Class = llm.ClassBackground }, want: wants{a: 1, b: 1}},
		{name: "no credit", fail: failure(llm.OutcomeQuotaExhausted, ""), want: wants{a: 1, b: 1}},
		{name: "no credit, policy fails", fail: failure(llm.OutcomeQuotaExhausted, ""),
			tune: func(f *chain.Feature) { f.OnQuota = chain.Fail }, want: wants{a: 1, code: llm.CodeUnavailable}},
		{name: "invalid request", fail: failure(llm.OutcomeInvalidRequest, ""), want: wants{a: 1, code: llm.CodeInvalidRequest}},
		{name: "unsupported here", fail: failure(llm.OutcomeInvalidRequest, provider.DetailUnsupported), want: wants{a: 1, b: 1}},
		{name: "body limit", fail: failure(llm.OutcomeInvalidRequest, provider.DetailBodyLimit), want: wants{a: 1, code: llm.CodeTooLarge}},
		{name: "context, same window", fail: failure(llm.OutcomeContextLength, ""), want: wants{a: 1, code: llm.CodeContextLength}},
		{name: "context, larger window", fail: failure(llm.OutcomeContextLength, ""),
			tune: func(f *chain.Feature) { f.Targets[1].Can.ContextWindow = 2000 }, want: wants{a: 1, b: 1}},
		{name: "credentials", fail: failure(llm.OutcomeAuth, ""), want: wants{a: 1, code: llm.CodeProviderAuth}},
		{name: "credentials, policy moves on", fail: failure(llm.OutcomeAuth, ""),
			tune: func(f *chain.Feature) { f.OnMisconfigured = chain.FailOver }, want: wants{a: 1, b: 1}},
		{name: "no such model", fail: failure(llm.OutcomeNotFound, ""), want: wants{a: 1, code: llm.CodeProviderAuth}},
		{name: "refusal", fail: failure(llm.OutcomeContentFiltered, ""), want: wants{a: 1, code: llm.CodeContentFiltered}},
		{name: "refusal, policy moves on", fail: failure(llm.OutcomeContentFiltered, provider.DetailRecitation),
			tune: func(f *chain.Feature) { f.OnRefusal = chain.FailOver }, want: wants{a: 1, b: 1}},
		{name: "invalid output: once again", fail: failure(llm.OutcomeInvalidOutput, ""), want: wants{a: 2, b: 1}},
		{name: "invalid output, policy fails", fail: failure(llm.OutcomeInvalidOutput, ""),
			tune: func(f *chain.Feature) { f.OnInvalidOutput = chain.Fail }, want: wants{a: 2, code: llm.CodeInvalidOutput}},
		{name: "cut by its length, same limit", fail: failure(llm.OutcomeInvalidOutput, provider.DetailLengthCut), want: wants{a: 1, code: llm.CodeInvalidOutput}},
		{name: "cut by its length, larger limit", fail: failure(llm.OutcomeInvalidOutput, provider.DetailLengthCut),
			tune: func(f *chain.Feature) { f.Targets[1].Can.MaxOutputTokens = 200 }, want: wants{a: 1, b: 1}},
		{name: "no failover asked", fail: failure(llm.OutcomeUnavailable, ""),
			request: func(r *llm.Request) { r.NoFailover = true }, want: wants{a: 2, code: llm.CodeUnavailable, trips: true}},
		{name: "an unknown error of an adapter", fail: failure("strange", ""), want: wants{a: 2, b: 1, trips: true}},
	} {
		for way, do := range both {
			t.Run(row.name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rig := newRig(t, func(f *chain.Feature) {
						f.Targets[0].Attempts = 2
						if row.tune != nil {
							row.tune(f)
						}
					}, fake.New(fake.Fails(row.fail)), fake.New(fake.Answer("from b")))
					req := ask()
					if row.request != nil {
						row.request(req)
					}
					got := do(t.Context(), rig, req)
					require.Equal(t, map[string]int{"a": row.want.a, "b": row.want.b}, rig.counts())
					if row.want.code != "" {
						require.NotNil(t, got.err)
						require.Equal(t, row.want.code, got.err.Code)
						require.Len(t, got.err.Attempts, row.want.a)
					} else {
						require.Nil(t, got.err)
						require.Equal(t, "from b", got.resp.Content)
						require.Len(t, got.resp.Attempts, row.want.a+row.want.b)
						require.Equal(t, row.fail.Outcome, got.resp.Attempts[0].Class)
					}
					for range 5 {
						do(t.Context(), rig, req)
					}
					require.Equal(t, row.want.trips, rig.state("a") == breaker.Open, "breaker of a is %s", rig.state("a"))
				})
			})
		}
	}
}
