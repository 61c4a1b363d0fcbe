package chain_test

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

var update = flag.Bool("update", false, "write the golden log lines anew")

// logCases are requests whose log lines are kept in testdata/log.
var logCases = map[string]struct {
	feature  func(*chain.Feature)
	steps    []fake.Step
	switches map[string]string
	stream   bool
}{
	"success":              {steps: []fake.Step{versioned()}},
	"stream":               {steps: []fake.Step{versioned()}, stream: true},
	"failover":             {steps: []fake.Step{fake.FailsWith(llm.OutcomeOverloaded), versioned()}},
	"failure":              {steps: []fake.Step{fake.FailsWith(llm.OutcomeConnect), {Wait: 20 * time.Millisecond, Err: fake.FailsWith(llm.OutcomeUnavailable).Err}}},
	"fallback":             {feature: sorry, steps: []fake.Step{fake.FailsWith(llm.OutcomeConnect)}},
	"kill-switch":          {steps: []fake.Step{versioned()}, switches: map[string]string{"feature.f": "off"}},
	"kill-switch-fallback": {feature: sorry, steps: []fake.Step{versioned()}, switches: map[string]string{"feature.f": "off"}},
}

func sorry(f *chain.Feature) {
	f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackStatic}, "Sorry, later."
}

// versioned answers "hello" after 30 ms and ends 10 ms later.
func versioned() fake.Step {
	return fake.Step{Wait: 30 * time.Millisecond, Gap: 10 * time.Millisecond, Pieces: []string{"hel", "lo"},
		Usage: &llm.Usage{InputTokens: new(int64(1000)), OutputTokens: new(int64(500))}, Version: "m-2026-11-30"}
}

// TestLogLine holds the one line of a request, which operators' tools parse, to
// what is kept.
func TestLogLine(t *testing.T) {
	for name, tc := range logCases {
		t.Run(name, func(t *testing.T) {
			var fakes []*fake.Provider
			for _, s := range tc.steps {
				fakes = append(fakes, fake.New(s))
			}
			var text, asJSON bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				utc := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						a.Value = slog.TimeValue(a.Value.Time().UTC())
					}
					return a
				}}
				handlers := slog.NewMultiHandler(slog.NewTextHandler(&text, utc), slog.NewJSONHandler(&asJSON, utc))
				rig := newRig(t, func(f *chain.Feature) {
					for i := range f.Targets {
						f.Targets[i].Price = chain.Price{Input: 1, Output: 2}
					}
					if tc.feature != nil {
						tc.feature(f)
					}
				}, fakes...)
				rig.switches.set(t, tc.switches)
				rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Log: slog.New(handlers)})
				rig.Load([]chain.Feature{rig.feature})
				req := ask()
				req.Tenant = "acme"
				do := complete
				if tc.stream {
					do = stream
				}
				do(t.Context(), rig, req)
			})
			golden(t, "testdata/log/"+name+".txt", text.String())
			golden(t, "testdata/log/"+name+".json", asJSON.String())
			for _, field := range []string{"id=", "feature=", "class=", "tenant=822b33ad87c1", "total_ms=", "attempts=", "input_tokens=", "output_tokens=", "cost_usd=", "degraded="} {
				require.Contains(t, text.String(), " "+field)
			}
			require.NotContains(t, text.String(), "hello", "content")
			require.NotContains(t, text.String(), "acme", "a tenant's name")
		})
	}
}

// golden compares a text with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(want)), strings.TrimSpace(got))
}
