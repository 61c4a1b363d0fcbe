package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// axis is something that a fleet may have more of.
type axis struct {
	name   string
	title  string
	values []int
	lab    func(n int) (setup, scenario)
}

var axes = []axis{
	{"workers", "workers that share the requests", []int{1, 2, 4}, func(n int) (setup, scenario) {
		return setup{config: grown(1, 1, 1), workers: n}, scenario{features: 1}
	}},
	{"features", "features, which share one target", []int{1, 10, 100, 1000, 10_000}, func(n int) (setup, scenario) {
		return setup{config: grown(n, 1, 1), workers: 1}, scenario{features: n}
	}},
	{"breakers", "features with a target, and so a breaker, of their own", []int{1, 10, 100, 1000, 10_000}, func(n int) (setup, scenario) {
		return setup{config: grown(n, n, 1), workers: 1}, scenario{features: n}
	}},
	{"targets", "targets of a feature, of which the first answers", []int{1, 2, 4, 8}, func(n int) (setup, scenario) {
		return setup{config: grown(1, n, n), workers: 1}, scenario{features: 1}
	}},
	{"tenants", "tenants, named in a header", []int{1, 10, 100, 1000, 10_000}, func(n int) (setup, scenario) {
		return setup{config: grown(1, 1, 1), workers: 1, environment: []string{"LLMBUS_TENANT_HEADER=true"}}, scenario{features: 1, tenants: n}
	}},
}

const grownModel = "tokens-200"

func featureName(i int) string { return fmt.Sprintf("feature-%d", i) }

func modelKey(i int) string { return fmt.Sprintf("key-%d", i) } // which makes 200 tokens, too

// grown is a configuration of so many features and models, with so many targets
// to a feature.
func grown(features, models, targets int) func(provider string) string {
	return func(provider string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "providers:\n  mock:\n    kind: openai\n    family: compatible\n    base_url: %s/v1\n    api_key_env: BENCH_KEY\n    models:\n", provider)
		for i := range models {
			fmt.Fprintf(&b, "      %s: {}\n", modelKey(i))
		}
		b.WriteString("features:\n")
		for i := range features {
			list := make([]string, targets)
			for j := range list {
				list[j] = fmt.Sprintf("{provider: mock, model: %s}", modelKey((i+j)%models))
			}
			fmt.Fprintf(&b, "  %s: {targets: [%s]}\n", featureName(i), strings.Join(list, ", "))
		}
		return b.String()
	}
}

// point is what one value of an axis costs.
type point struct {
	n                 int
	cpu, worker, rate float64 // ratios to the floor
	micros            float64 // CPU time of a request, with the NATS server's share
}

// grow measures how the cost of a request grows along each axis, and draws it.
func grow(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench grow", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each point")
	flags.DurationVar(&o.span, "d", time.Second, "time measured of each side in a round")
	flags.StringVar(&o.broker, "broker", "", "a built broker; built from this module when empty")
	flags.StringVar(&o.out, "out", "", "add every single run to this file, one JSON object a line")
	folder := flags.String("svg", "", "draw the plots into this folder")
	only := flags.String("axis", "", "one of workers, features, breakers, targets, tenants; all when empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.broker, err = build(ctx, dir, o.broker); err != nil {
		return err
	}
	known := false
	for _, a := range axes {
		if *only != "" && a.name != *only {
			continue
		}
		known = true
		if err := a.measure(ctx, o, *folder); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	if !known {
		return errors.New("-axis names none of workers, features, breakers, targets, tenants")
	}
	return nil
}

func (a *axis) measure(ctx context.Context, o options, folder string) error {
	var points []point
	for _, n := range a.values {
		p, err := a.point(ctx, o, n)
		if err != nil {
			return err
		}
		points = append(points, p)
	}
	fmt.Printf("\n%s\n", a.title)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tCPU µs/request\tto the floor\tof the worker\trequests/s\t")
	for _, p := range points {
		fmt.Fprintf(t, "%d\t%.1f\t%.2f\t%.2f\t%.2f\t\n", p.n, p.micros, p.cpu, p.worker, p.rate)
	}
	if err := t.Flush(); err != nil || folder == "" {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "grow-"+a.name+".svg"), draw(a.title, points), 0o644)
}

func (a *axis) point(ctx context.Context, o options, n int) (point, error) {
	what, load := a.lab(n)
	what.broker, what.first = o.broker, featureName(0)
	load.name, load.callers, load.prompt, load.model = fmt.Sprintf("%s-%d", a.name, n), 50, kib, grownModel
	l, err := startLab(ctx, what)
	if err != nil {
		return point{}, err
	}
	defer l.close()
	results, err := l.rounds(ctx, load, o)
	if err != nil {
		return point{}, err
	}
	floor, broker := results["floor"], results["broker"]
	ratio := func(of func(result) float64) float64 {
		list := make([]float64, len(floor))
		for i := range floor {
			list[i] = of(broker[i]) / of(floor[i])
		}
		return median(list)
	}
	return point{
		n: n, cpu: ratio(func(r result) float64 { return r.CPU }), worker: ratio(func(r result) float64 { return r.Worker }),
		rate: ratio(func(r result) float64 { return r.Rate }), micros: median(values(broker, figure{of: func(r result) float64 { return r.CPU }})),
	}, nil
}
