package telemetry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/telemetry"
)

// TestHostileCallersDoNotMakeMetricsGrow sends what a caller may choose in
// 100,000 forms.
func TestHostileCallersDoNotMakeMetricsGrow(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{Tenants: 3})
	router := route(t, tel, nil, fake.New())
	for range 4 { // an ordinary tenant among the others
		_, err := router.Complete(t.Context(), ask(func(r *llm.Request) { r.Tenant = "acme" }))
		require.NoError(t, err)
	}
	ending := chain.Ending{Response: &llm.Response{ServedBy: llm.ServedByModel, Attempts: []llm.Attempt{{Provider: "a", Model: "m", Class: llm.OutcomeOK, CostUSD: 1}}}}
	hostile := func(i int) {
		tel.RequestEnded(t.Context(), ask(func(r *llm.Request) {
			r.Tenant, r.ID, r.Class = fmt.Sprint("evil-", i), fmt.Sprint(i), llm.ClassInteractive
		}), ending)
		_, err := router.Complete(t.Context(), ask(func(r *llm.Request) { r.Feature = fmt.Sprint("nosuch-", i) }))
		require.ErrorIs(t, err, llm.ErrUnknownFeature)
	}
	hostile(0)
	before := len(own(metrics(t, tel)))
	for i := range 100_000 {
		hostile(i)
	}
	text := metrics(t, tel)
	require.Len(t, own(text), before)
	require.NotContains(t, text, "evil")
	require.NotContains(t, text, "nosuch")
	require.NotContains(t, text, "acme", "hashed")
	require.Contains(t, text, `llmbus_tenant_requests_total{llmbus_tenant="other"} 100004`)
	require.Contains(t, text, `llmbus_tenant_requests_total{llmbus_tenant="822b33ad87c1"} 1`, "its fourth")
}

// TestTenantsAreCapped has more tenants than labels come often.
func TestTenantsAreCapped(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{Tenants: 3})
	router := route(t, tel, nil, fake.New(answers()))
	for i := range 50 {
		for range 10 {
			_, err := router.Complete(t.Context(), ask(func(r *llm.Request) { r.Tenant = fmt.Sprint("t", i) }))
			require.NoError(t, err)
		}
	}
	text := metrics(t, tel)
	require.Equal(t, 4, strings.Count(text, "llmbus_tenant_requests_total{"), "three and the rest")
	require.Equal(t, 8, strings.Count(text, "llmbus_tenant_tokens_total{"))
	require.Contains(t, text, `llmbus_tenant_requests_total{llmbus_tenant="other"} 479`, "their first three requests, and all of the others")
}

// TestVersionsAreCapped has a provider name another model version each time.
func TestVersionsAreCapped(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	router := route(t, tel, nil, fake.Func(func(call int, _ *llm.Request) fake.Step {
		return fake.Step{Response: &llm.Response{Content: "x", ModelVersion: fmt.Sprint("m-", call)}}
	}))
	for range 1000 {
		_, err := router.Complete(t.Context(), ask())
		require.NoError(t, err)
	}
	text := metrics(t, tel)
	require.Equal(t, 9, strings.Count(text, "gen_ai_client_operation_duration_seconds_count{"))
	require.Regexp(t, `gen_ai_client_operation_duration_seconds_count\{.*gen_ai_response_model="other".*\} 992`, text)
}
