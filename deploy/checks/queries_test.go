package checks

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

// query is one expression of a file, and what it is for.
type query struct{ name, expr string }

// dashboard reads all queries of a Grafana dashboard, with its variables set.
func dashboard(t *testing.T) (queries []query) {
	t.Helper()
	type target struct{ Expr string }
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []target
		}
		Annotations struct {
			List []struct{ Name, Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	text, err := os.ReadFile("../grafana/llmbus.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	set := strings.NewReplacer("$job", "llmbus", "$feature", ".*", "$__rate_interval", "5m")
	for _, p := range board.Panels {
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, "panel %q", p.Title)
		for _, target := range p.Targets {
			queries = append(queries, query{p.Title, set.Replace(target.Expr)})
		}
	}
	for _, a := range board.Annotations.List {
		queries = append(queries, query{a.Name, set.Replace(a.Expr)})
	}
	for _, v := range board.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition); v.Type == "query" {
			require.NotNil(t, m, v.Definition)
			queries = append(queries, query{"variable " + v.Name, "count by (" + m[2] + ") (" + set.Replace(m[1]) + ")"})
		}
	}
	return queries
}

// alerts reads all alert rules as Prometheus does.
func alerts(t *testing.T) (queries []query) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../prometheus/alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
			queries = append(queries, query{r.Alert, r.Expr})
		}
	}
	return queries
}

// TestTheExampleOfAScrapeIsGood reads it as Prometheus does.
func TestTheExampleOfAScrapeIsGood(t *testing.T) {
	cfg, err := config.LoadFile("../prometheus/prometheus.yml", false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, []string{"../prometheus/alerts.yaml"}, cfg.RuleFiles)
	require.Equal(t, "llmbus", cfg.ScrapeConfigs[0].JobName, "the dashboard's default")
}

// sample is one series of a scrape.
type sample struct {
	series labels.Labels
	value  float64
}

// parse reads a scrape, with the labels that Prometheus adds.
func parse(t *testing.T, text string) (all []sample) {
	t.Helper()
	p := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return append(all, sample{labels.FromStrings("__name__", "up", "job", "llmbus", "instance", "w:9090"), 1})
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		var series labels.Labels
		p.Labels(&series)
		_, _, value := p.Series()
		b := labels.NewBuilder(series)
		b.Set("job", "llmbus").Set("instance", "w:9090")
		all = append(all, sample{b.Labels(), value})
	}
}

// TestQueriesNameWhatThereIs holds every metric and label of every query to the
// metrics of a worker that has seen everything.
func TestQueriesNameWhatThereIs(t *testing.T) {
	w := start(t)
	w.happen()
	first := parse(t, w.scrape())
	w.happen()
	second := parse(t, w.scrape())
	names := map[string]map[string]bool{} // labels by metric
	for _, s := range second {
		name := s.series.Get("__name__")
		if names[name] == nil {
			names[name] = map[string]bool{}
		}
		s.series.Range(func(l labels.Label) { names[name][l.Name] = true })
	}
	for _, q := range append(dashboard(t), alerts(t)...) {
		check(t, q, names)
	}
	t.Run("they give figures", func(t *testing.T) { evaluate(t, first, second) })
}

// check walks over one query.
func check(t *testing.T, q query, names map[string]map[string]bool) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	require.NoError(t, err, q.name)
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			have := names[n.Name]
			require.NotNil(t, have, "%s: there is no metric %q", q.name, n.Name)
			for _, m := range n.LabelMatchers {
				require.True(t, have[m.Name], "%s: %s has no label %q, only %v", q.name, n.Name, m.Name, slices.Sorted(maps.Keys(have)))
				known(t, q, m)
			}
		case *parser.AggregateExpr:
			parser.Inspect(n.Expr, func(inner parser.Node, _ []parser.Node) error {
				if v, ok := inner.(*parser.VectorSelector); ok {
					for _, label := range n.Grouping {
						require.True(t, names[v.Name][label], "%s: %s has no label %q", q.name, v.Name, label)
					}
				}
				return nil
			})
		}
		return nil
	})
}

// known holds the values of fixed words to those of the program.
func known(t *testing.T, q query, m *labels.Matcher) {
	t.Helper()
	if !slices.Contains([]string{"error_type", "llmbus_state", "llmbus_served_by"}, m.Name) || m.Value == "" {
		return
	}
	var code strings.Builder
	for _, file := range []string{"llm/errors.go", "llm/response.go", "bus/group.go", "breaker/view.go"} {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		code.Write(text)
	}
	for _, word := range strings.Split(m.Value, "|") {
		require.Contains(t, code.String(), `"`+word+`"`, "%s: nothing has %s", q.name, m)
	}
}

// quiet alerts are about what did not happen here.
var quiet = []string{"LLMBusNoWorkers", "LLMBusSlowFirstToken", "LLMBusCircuitFlaps", "LLMBusProviderNeedsOperator", "LLMBusCostJump", "LLMBusBusy", "LLMBusNearlyFull",
	"LLMBusDegraded", "LLMBusConfigRefused", "LLMBusJobsPileUp"}

// evaluate asks a real engine: every panel must show something, and the alerts
// must tell of what happened and of nothing else.
func evaluate(t *testing.T, first, second []sample) {
	store := teststorage.New(t)
	begun := time.Unix(1_000_000, 0)
	for i, scrape := range [][]sample{first, second} {
		app := store.Appender(t.Context())
		for _, s := range scrape {
			_, err := app.Append(0, s.series, begun.Add(time.Duration(i)*time.Minute).UnixMilli(), s.value)
			require.NoError(t, err)
		}
		require.NoError(t, app.Commit())
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	figures := func(q query) int {
		ask, err := engine.NewInstantQuery(t.Context(), store, nil, q.expr, begun.Add(time.Minute))
		require.NoError(t, err, q.name)
		defer ask.Close()
		result := ask.Exec(t.Context())
		require.NoError(t, result.Err, q.name)
		vector, err := result.Vector()
		require.NoError(t, err, q.name)
		return len(vector)
	}
	for _, q := range dashboard(t) {
		if q.name != "Circuits that opened" { // none did between the two scrapes
			require.Positive(t, figures(q), "%s shows nothing: %s", q.name, q.expr)
		}
	}
	for _, q := range alerts(t) {
		require.Equal(t, !slices.Contains(quiet, q.name), figures(q) > 0, "%s: %s", q.name, q.expr)
	}
}

// TestEveryAlertIsExplained holds the documentation to the rules, in both
// directions.
func TestEveryAlertIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/telemetry.md")
	require.NoError(t, err)
	var explained, ring []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(LLMBus\\w+)` \\| \\S").FindAllStringSubmatch(string(text), -1) {
		explained = append(explained, m[1])
	}
	for _, q := range alerts(t) {
		ring = append(ring, q.name)
	}
	require.ElementsMatch(t, ring, explained)
}
