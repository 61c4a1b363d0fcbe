package telemetry_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/telemetry"
)

// TestTheLogLineNamesItsTrace does so only where the trace is kept.
func TestTheLogLineNamesItsTrace(t *testing.T) {
	for parent, want := range map[string]string{sampled: `"trace_id":"` + traceID + `"`, dropped: ""} {
		var log bytes.Buffer
		tel := newTelemetry(t, telemetry.Config{Spans: &kept{}})
		router := chain.NewRouter(chain.Config{Switches: noSwitches{}, Followers: []chain.Follower{tel},
			Log: telemetry.Log(slog.New(slog.NewJSONHandler(&log, nil))).With("worker", "w").WithGroup("")})
		router.Load([]chain.Feature{feature(t, nil, fake.New())})
		_, err := router.Complete(t.Context(), ask(func(r *llm.Request) { r.TraceParent = parent }))
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), "one line")
		if want == "" {
			require.NotContains(t, log.String(), "trace_id")
			continue
		}
		require.Contains(t, log.String(), want)
	}
}
