package telemetry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/telemetry"
)

func TestRequestsAndCallsAreCounted(t *testing.T) {
	static := func(f *chain.Feature) { f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackStatic}, "later" }
	call := `gen_ai_operation_name="chat",gen_ai_provider_name="%[1]s",gen_ai_request_model="m",%[2]sllmbus_feature="f",llmbus_provider="%[1]s"`
	target := func(name, more string) string { return fmt.Sprintf(call, name, more) }
	for name, tc := range map[string]struct {
		tune  func(*chain.Feature)
		fakes []*fake.Provider
		ask   func(*llm.Request)
		want  []string
	}{
		"an answer": {nil, []*fake.Provider{fake.New(answers())}, nil, []string{
			`llmbus_requests_total{llmbus_class="interactive",llmbus_feature="f",llmbus_served_by="model"} 1`,
			`llmbus_request_duration_seconds_count{llmbus_feature="f",llmbus_served_by="model"} 1`,
			`gen_ai_client_operation_duration_seconds_count{` + target("a", "") + `} 1`,
			`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="a",gen_ai_request_model="m",gen_ai_token_type="input",llmbus_feature="f",llmbus_provider="a"} 1000`,
			`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="a",gen_ai_request_model="m",gen_ai_token_type="output",llmbus_feature="f",llmbus_provider="a"} 500`,
			`llmbus_cost_usd_total{gen_ai_request_model="m",llmbus_feature="f",llmbus_provider="a"} 0.002`,
		}},
		"failover": {nil, []*fake.Provider{fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New(answers())}, nil, []string{
			`llmbus_requests_total{llmbus_class="interactive",llmbus_feature="f",llmbus_served_by="model"} 1`,
			`llmbus_failovers_total{error_type="connect",gen_ai_request_model="m",llmbus_feature="f",llmbus_provider="a"} 1`,
			`llmbus_failover_outcomes_total{llmbus_feature="f",llmbus_outcome="succeeded"} 1`,
			`gen_ai_client_operation_duration_seconds_count{error_type="connect",` + target("a", "") + `} 1`,
			`gen_ai_client_operation_duration_seconds_count{` + target("b", "") + `} 1`,
		}},
		"exhausted": {nil, []*fake.Provider{fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New(fake.FailsWith(llm.OutcomeOverloaded))}, nil, []string{
			`llmbus_requests_total{error_type="unavailable",llmbus_class="interactive",llmbus_feature="f"} 1`,
			`llmbus_request_duration_seconds_count{error_type="unavailable",llmbus_feature="f"} 1`,
			`llmbus_failover_outcomes_total{llmbus_feature="f",llmbus_outcome="failed"} 1`,
		}},
		"a fallback": {static, []*fake.Provider{fake.New(fake.FailsWith(llm.OutcomeConnect))}, nil, []string{
			`llmbus_requests_total{llmbus_class="interactive",llmbus_feature="f",llmbus_served_by="fallback"} 1`,
			`llmbus_fallbacks_total{llmbus_fallback="static",llmbus_feature="f",llmbus_served_by="fallback"} 1`,
		}},
		"an answer that does not fit": {nil, []*fake.Provider{fake.New(answers())}, func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: []byte(`{}`)} }, []string{
			`llmbus_validation_failures_total{gen_ai_request_model="m",llmbus_feature="f",llmbus_provider="a"} 1`,
			`llmbus_requests_total{error_type="invalid_output",llmbus_class="interactive",llmbus_feature="f"} 1`,
		}},
		"an error that quotes the prompt": {nil, []*fake.Provider{fake.New(fake.Fails(errors.New(secret)))}, nil, []string{
			`gen_ai_client_operation_duration_seconds_count{error_type="unavailable",` + target("a", "") + `} 1`,
		}},
		"a version that is a piece of the answer": {nil, []*fake.Provider{fake.New(fake.Step{Pieces: []string{secret}, Version: secret})}, nil, []string{
			`gen_ai_client_operation_duration_seconds_count{` + target("a", "") + `} 1`,
		}},
		"a model version": {nil, []*fake.Provider{fake.New(fake.Step{Response: &llm.Response{Content: "x", ModelVersion: "m-2026"}})}, nil, []string{
			`gen_ai_client_operation_duration_seconds_count{` + target("a", `gen_ai_response_model="m-2026",`) + `} 1`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tel := newTelemetry(t, telemetry.Config{})
			router := route(t, tel, tc.tune, tc.fakes...)
			req := ask()
			if tc.ask != nil {
				tc.ask(req)
			}
			_, _ = router.Complete(t.Context(), req)
			text := metrics(t, tel)
			lines := own(text)
			for _, want := range tc.want {
				require.Contains(t, lines, want)
			}
			require.NotContains(t, text, secret)
		})
	}
}

func TestAStreamIsTimedToItsFirstToken(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	slow := answers()
	slow.Wait = 5 * time.Millisecond
	for _, err := range route(t, tel, nil, fake.New(slow)).Stream(t.Context(), ask(func(r *llm.Request) { r.Stream = true })) {
		require.NoError(t, err)
	}
	lines := own(metrics(t, tel))
	require.Contains(t, lines, `llmbus_request_time_to_first_token_seconds_count{llmbus_feature="f"} 1`)
	require.Contains(t, lines, `gen_ai_client_operation_time_to_first_chunk_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="a",gen_ai_request_model="m",llmbus_feature="f",llmbus_provider="a"} 1`)
}

// TestProviderNames shows that the conventions' name stands beside ours.
func TestProviderNames(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{ProviderName: func(string) string { return "gcp.gemini" }})
	_, err := route(t, tel, nil, fake.New()).Complete(t.Context(), ask())
	require.NoError(t, err)
	require.Contains(t, metrics(t, tel), `gen_ai_provider_name="gcp.gemini",gen_ai_request_model="m",llmbus_feature="f",llmbus_provider="a"`)
}

func TestBreakersSwitchesAndTheWorker(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{Read: func() telemetry.Reading {
		return telemetry.Reading{State: "joined", Messages: map[string]int64{"": 7, "busy": 2}, InFlight: 3, Slots: 16, Degraded: true, Refused: 1,
			Breakers: []telemetry.Breaker{{"a", "m", "open"}, {"b", "m", "half_open"}, {"c", "m", "cooling"}, {"d", "m", "closed"}},
			Off:      map[string]int{"all": 1, "feature": 0}, Jobs: &telemetry.Jobs{Pending: 5, InHand: 2, Dead: 1}}
	}})
	tel.BreakerChanged("a", "m", "open")
	tel.SwitchFlipped("feature", false)
	lines := strings.Join(own(metrics(t, tel)), "\n")
	for _, want := range []string{
		`llmbus_worker_info{llmbus_state="joined",llmbus_version="1.2.3",llmbus_worker="w-1"} 1`,
		`llmbus_worker_messages_total 7`, `llmbus_worker_messages_total{error_type="busy"} 2`,
		`llmbus_worker_in_flight 3`, `llmbus_worker_slots 16`, `llmbus_worker_degraded 1`, `llmbus_config_refused 1`,
		`llmbus_breaker_state{gen_ai_request_model="m",llmbus_provider="a"} 3`, `llmbus_breaker_state{gen_ai_request_model="m",llmbus_provider="b"} 2`,
		`llmbus_breaker_state{gen_ai_request_model="m",llmbus_provider="c"} 1`, `llmbus_breaker_state{gen_ai_request_model="m",llmbus_provider="d"} 0`,
		`llmbus_breaker_transitions_total{gen_ai_request_model="m",llmbus_provider="a",llmbus_state="open"} 1`,
		`llmbus_switches_off{llmbus_scope="all"} 1`, `llmbus_switches_off{llmbus_scope="feature"} 0`,
		`llmbus_switch_flips_total{llmbus_scope="feature",llmbus_state="off"} 1`,
		`llmbus_jobs_pending 5`, `llmbus_jobs_in_hand 2`, `llmbus_jobs_dead_letters 1`,
	} {
		require.Contains(t, lines, want)
	}
}

func TestLimitsAreCounted(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	tel.Observe(chain.Event{Name: chain.EventRequestFailed, Feature: "f"})
	tel.Observe(chain.Event{Name: chain.EventLimitExceeded, Feature: "f", Tenant: "x", Limit: "tokens_per_minute", Code: llm.CodeRateLimited})
	require.Contains(t, own(metrics(t, tel)), `llmbus_limits_exceeded_total{error_type="rate_limited",llmbus_feature="f",llmbus_limit="tokens_per_minute"} 1`)
}
