package telemetry_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/telemetry"
)

// BenchmarkRequest is one request through the chain over a provider that
// answers at once, so that the difference to none is what telemetry costs.
func BenchmarkRequest(b *testing.B) {
	for _, bm := range []struct {
		name string
		cfg  *telemetry.Config
	}{
		{"none", nil},
		{"metrics", &telemetry.Config{}},
		{"metrics and 1% of traces", &telemetry.Config{Spans: &kept{}, Sample: new(0.01)}},
		{"metrics and all traces", &telemetry.Config{Spans: &kept{}, Sample: new(1.0)}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var tel *telemetry.Telemetry
			if bm.cfg != nil {
				tel = newTelemetry(b, *bm.cfg)
			}
			router, req := route(b, tel, nil, fake.Func(func(int, *llm.Request) fake.Step { return answers() })), ask(func(r *llm.Request) { r.Tenant = "acme" })
			b.ReportAllocs()
			began, n := cpu(b), 0
			for b.Loop() {
				n++
				_, err := router.Complete(b.Context(), req)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(cpu(b)-began)/float64(n), "cpu-ns/op")
		})
	}
}

// cpu is what this process has used so far: unlike time it hardly depends on
// what else the machine does.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
