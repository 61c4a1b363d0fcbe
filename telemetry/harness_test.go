package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
	"github.com/llmbus/llmbus/telemetry"
)

// secret stands for everything that must not be recorded.
const secret = "sesame-4711"

// noSwitches has every switch on.
type noSwitches struct{}

func (noSwitches) Current(context.Context) (*kv.FlagSet, bool) { return kv.ParseFlags(nil), false }

// newTelemetry makes one that ends with the test.
func newTelemetry(tb testing.TB, cfg telemetry.Config) *telemetry.Telemetry {
	tb.Helper()
	cfg.Version, cfg.Worker = "1.2.3", "w-1"
	tel, err := telemetry.New(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, tel.Shutdown(context.Background())) })
	return tel
}

// feature is f over the fakes a, b, c ….
func feature(tb testing.TB, tune func(*chain.Feature), fakes ...*fake.Provider) chain.Feature {
	tb.Helper()
	group, err := breaker.New(breaker.Config{})
	require.NoError(tb, err)
	f := chain.Feature{Name: "f", Class: llm.ClassInteractive, Timeout: 10 * time.Second}
	for i, p := range fakes {
		name := string(rune('a' + i))
		f.Targets = append(f.Targets, chain.Target{
			Provider: name, Model: "m", Completer: p, Attempts: 1, Price: chain.Price{Input: 1, Output: 2}, Can: provider.Capabilities{JSONSchema: true, Streaming: true, ContextWindow: 1000},
			Breaker: group.Breaker(subjects.BreakerKey(name, "m"), breaker.Settings{}),
		})
	}
	if tune != nil {
		tune(&f)
	}
	return f
}

// route makes a router with one feature, which tel follows.
func route(tb testing.TB, tel *telemetry.Telemetry, tune func(*chain.Feature), fakes ...*fake.Provider) *chain.Router {
	tb.Helper()
	config := chain.Config{Switches: noSwitches{}}
	if tel != nil {
		config.Followers = []chain.Follower{tel}
	}
	r := chain.NewRouter(config)
	r.Load([]chain.Feature{feature(tb, tune, fakes...)})
	return r
}

func ask(tune ...func(*llm.Request)) *llm.Request {
	req := &llm.Request{ID: "r1", Feature: "f", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("open " + secret)}}}
	for _, f := range tune {
		f(req)
	}
	return req
}

// answers is a step with text and usage.
func answers() fake.Step {
	return fake.Step{Pieces: []string{"the door is ", secret}, Usage: &llm.Usage{InputTokens: new(int64(1000)), OutputTokens: new(int64(500))}}
}

// metrics is what Prometheus reads.
func metrics(tb testing.TB, tel *telemetry.Telemetry) string {
	tb.Helper()
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(tb, http.StatusOK, rec.Code)
	return rec.Body.String()
}

// own are the lines of our metrics, without those of the process.
func own(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "llmbus_") || strings.HasPrefix(line, "gen_ai_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
