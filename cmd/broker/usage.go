package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/usage"
)

// mostDays bounds the days of one report.
const mostDays = 400

func newUsage(io streams) *cobra.Command {
	var day, from, to string
	var by []string
	v := &usageView{streams: io}
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show requests, tokens and cost by tenant, feature, provider, model or day",
		Long: "Usage adds up what all workers counted, of today unless you name days; days are of UTC. A provider of - stands for\n" +
			"requests that no model answered. CALLS are of providers, failed ones and repetitions too. Cost is what the\n" +
			"prices in force made of the tokens that providers reported; see config prices.",
		Example: "  broker usage\n  broker usage --by tenant,feature\n  broker usage --from 2026-11-01 --to 2026-11-30 --by day,provider,model --csv > november.csv",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			first, last, err := daysOf(day, from, to, time.Now())
			if err != nil {
				return usageError{err}
			}
			if v.by, err = dimensions(by); err != nil {
				return usageError{err}
			}
			if v.csv && v.json {
				return usageError{errors.New("--csv and --json exclude each other")}
			}
			return withBuckets(c.Context(), func(ctx context.Context, b *kv.Buckets) error {
				rows, err := usage.Read(ctx, b.Usage, first, last)
				if err != nil {
					return err
				}
				return v.print(usage.Sum(rows, v.by...), usage.Sum(rows))
			})
		},
	}
	c.Flags().StringVar(&day, "day", "", "one day, YYYY-MM-DD; default today")
	c.Flags().StringVar(&from, "from", "", "first day, YYYY-MM-DD")
	c.Flags().StringVar(&to, "to", "", "last day, YYYY-MM-DD; default today")
	c.Flags().StringSliceVar(&by, "by", []string{"provider", "model"}, "what to keep apart: day, tenant, feature, provider, model, or none")
	c.Flags().BoolVar(&v.csv, "csv", false, "print CSV, without the total")
	c.Flags().BoolVar(&v.json, "json", false, "print JSON, without the total")
	return c
}

// daysOf makes a span of days of the three flags.
func daysOf(day, from, to string, now time.Time) (first, last time.Time, err error) {
	switch {
	case day != "" && (from != "" || to != ""):
		return first, last, errors.New("--day is a day alone; use --from and --to for a span")
	case to != "" && from == "":
		return first, last, errors.New("--to needs --from")
	case day != "":
		from, to = day, day
	}
	first, last = now.UTC(), now.UTC()
	for _, d := range []struct {
		flag, text string
		at         *time.Time
	}{{"from", from, &first}, {"to", to, &last}} {
		if d.text == "" {
			continue
		}
		if *d.at, err = time.Parse(usage.DayFormat, d.text); err != nil {
			return first, last, fmt.Errorf("%q is no day; write it as 2026-11-30", d.text)
		}
	}
	days := int(last.Sub(first).Hours() / 24)
	switch {
	case last.Format(usage.DayFormat) < first.Format(usage.DayFormat):
		return first, last, fmt.Errorf("the last day, %s, is before the first, %s", last.Format(usage.DayFormat), first.Format(usage.DayFormat))
	case days >= mostDays:
		return first, last, fmt.Errorf("%d days are too many; ask for at most %d", days+1, mostDays)
	}
	return first, last, nil
}

// dimensions reads --by.
func dimensions(by []string) ([]usage.Dimension, error) {
	if len(by) == 1 && by[0] == "none" {
		return nil, nil
	}
	known := usage.Dimensions()
	var list []usage.Dimension
	for _, name := range by {
		d := usage.Dimension(strings.TrimSpace(name))
		if !slices.Contains(known, d) || slices.Contains(list, d) {
			return nil, fmt.Errorf("--by takes %s, each once, or none; not %q", strings.Trim(fmt.Sprint(known), "[]"), name)
		}
		list = append(list, d)
	}
	return list, nil
}

// usageView prints totals.
type usageView struct {
	streams
	by        []usage.Dimension
	csv, json bool
}

func (v *usageView) print(rows, total []usage.Row) error {
	switch {
	case v.json:
		e := json.NewEncoder(v.out)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	case v.csv:
		return v.printCSV(rows)
	}
	w := tabwriter.NewWriter(v.out, 0, 0, 2, ' ', 0)
	for _, d := range v.by {
		fmt.Fprint(w, strings.ToUpper(string(d))+"\t")
	}
	fmt.Fprintln(w, "REQUESTS\tFAILED\tCALLS\tINPUT\tCACHED\tOUTPUT\tREASONING\tCOST USD")
	for _, r := range rows {
		line(w, v.key(r), r)
	}
	if len(rows) > 1 {
		names := make([]string, len(v.by))
		names[0] = "total"
		line(w, names, total[0])
	}
	if len(rows) == 0 {
		fmt.Fprintln(v.err, "nothing was counted on these days")
	}
	return w.Flush()
}

// key is the part of a row that tells it from others, - where it is empty.
func (v *usageView) key(r usage.Row) []string {
	cells := make([]string, len(v.by))
	for i, d := range v.by {
		cells[i] = cmp.Or(r.Value(d), "-")
	}
	return cells
}

func line(w *tabwriter.Writer, names []string, r usage.Row) {
	for _, name := range names {
		fmt.Fprint(w, name+"\t")
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.6f\n", r.Requests, r.Failed, r.Calls, r.InputTokens, r.CachedInputTokens,
		r.OutputTokens, r.ReasoningTokens, r.CostUSD)
}

// printCSV has empty cells where a key is empty, so that they are no name.
func (v *usageView) printCSV(rows []usage.Row) error {
	w := csv.NewWriter(v.out)
	var head []string
	for _, d := range v.by {
		head = append(head, string(d))
	}
	head = append(head, "requests", "failed", "calls", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "estimated_calls", "cost_usd")
	if err := w.Write(head); err != nil {
		return err
	}
	for _, r := range rows {
		var cells []string
		for _, d := range v.by {
			cells = append(cells, r.Value(d))
		}
		for _, n := range []int64{r.Requests, r.Failed, r.Calls, r.InputTokens, r.CachedInputTokens, r.OutputTokens, r.ReasoningTokens, r.Estimated} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		if err := w.Write(append(cells, strconv.FormatFloat(r.CostUSD, 'f', -1, 64))); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
