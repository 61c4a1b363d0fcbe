package telemetry_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/telemetry"
)

// row is how docs/telemetry.md describes a metric.
func row(m telemetry.Metric) string {
	var labels []string
	for _, key := range m.Attributes {
		labels = append(labels, "`"+underscored(string(key))+"`")
	}
	return fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |", prometheusName(m), m.Name, m.Kind, strings.Join(labels, ", "), m.Help)
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }

// prometheusName is the name on /metrics, without what a histogram adds.
func prometheusName(m telemetry.Metric) string {
	name := underscored(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == telemetry.Counter {
		name += "_total"
	}
	return name
}

// TestEveryMetricIsDocumented holds the table to the code, in its order.
func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/telemetry.md")
	require.NoError(t, err)
	var rows []string
	for _, m := range telemetry.Metrics() {
		rows = append(rows, row(m))
		for _, key := range m.Attributes {
			require.Contains(t, string(text), "| `"+underscored(string(key))+"` |", "the table of labels")
		}
	}
	require.Contains(t, string(text), "\n"+strings.Join(rows, "\n")+"\n\n")
}
