package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// figure is a column of a report.
type figure struct {
	name string
	of   func(result) float64
}

var figures = []figure{
	{"requests/s", func(r result) float64 { return r.Rate }},
	{"p50 µs", func(r result) float64 { return r.P50 }},
	{"p99 µs", func(r result) float64 { return r.P99 }},
	{"first p50", func(r result) float64 { return r.First50 }},
	{"first p99", func(r result) float64 { return r.First99 }},
	{"CPU µs/request", func(r result) float64 { return r.CPU }},
	{"of the worker", func(r result) float64 { return r.Worker }},
	{"CPU µs/token", func(r result) float64 { return r.CPUToken }},
	{"peak KiB", func(r result) float64 { return r.Peak }},
	{"of the worker", func(r result) float64 { return r.Own }},
	{"KiB/stream", func(r result) float64 { return r.Idle }},
}

// report prints a line for each figure: the medians, and the median of the
// ratios within a round.
func report(w io.Writer, sc scenario, o options, results map[string][]result) {
	fmt.Fprintf(w, "\n%s: %d callers, %d bytes, %s, stream %v, %s, %d rounds of %v\n",
		sc.name, max(sc.callers, sc.idle), sc.prompt, sc.model, sc.stream, sc.pace(), sc.roundsOf(o), o.span)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tfloor\tbroker\tratio\t")
	floor, broker := results["floor"], results["broker"]
	for _, f := range figures {
		a, b := values(floor, f), values(broker, f)
		if median(b) == 0 || !sc.stream && (f.name == "first p50" || f.name == "first p99" || f.name == "CPU µs/token") {
			continue
		}
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = b[i] / a[i]
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.2f\t\n", f.name, median(a), median(b), median(ratios))
	}
	_ = t.Flush()
}

func values(results []result, f figure) []float64 {
	list := make([]float64, len(results))
	for i, r := range results {
		list[i] = f.of(r)
	}
	return list
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// record appends one run to a file of JSON lines; an empty path keeps none.
func record(path string, r result) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	return json.NewEncoder(f).Encode(r)
}
