package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/limits"
)

func newLimits(io streams) *cobra.Command {
	var tenant, feature string
	var asJSON bool
	c := &cobra.Command{
		Use:   "limits",
		Short: "Show what tenants use of their limits now",
		Long: "Limits prints, for each limit in force, what the tenant has used of it in the present window. Workers lease what they\n" +
			"hand out in advance, up to a 64th of what is left each; what they have not used yet counts here and comes back after\n" +
			"a second. Tenants that the configuration does not name and that have used nothing are left out.",
		Example: "  broker limits\n  broker limits --tenant acme\n  broker limits --json | jq '.[] | select(.used >= .amount)'",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return withJetStream(c.Context(), func(ctx context.Context, js jetstream.JetStream, b *kv.Buckets) error {
				rows, err := limitsNow(ctx, js, b)
				if err != nil {
					return err
				}
				rows = slices.DeleteFunc(rows, func(u limits.Usage) bool {
					return c.Flags().Changed("tenant") && u.Tenant != tenant || c.Flags().Changed("feature") && u.Feature != feature
				})
				return printLimits(io, rows, asJSON)
			})
		},
	}
	c.Flags().StringVar(&tenant, "tenant", "", "of this tenant only")
	c.Flags().StringVar(&feature, "feature", "", "on this feature only; an empty one for the limits over all features")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON; dollars are numbers")
	return c
}

// limitsNow reads the limits that workers have in force, and what is used.
func limitsNow(ctx context.Context, js jetstream.JetStream, b *kv.Buckets) ([]limits.Usage, error) {
	held, err := config.Load(ctx, b.Features)
	if err != nil {
		return nil, err
	}
	cfg, _, _ := config.Adopt(nil, held, nil) // what workers cannot take has no effect here either
	return limits.Read(ctx, js, b.Slots, &cfg.Limits)
}

func printLimits(io streams, rows []limits.Usage, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(io.out)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(io.err, "no limit is in force, or none has been used; see limits in the configuration")
		return nil
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TENANT\tFEATURE\tLIMIT\tUSED\tOF\tSHARE\tRESETS")
	for _, u := range rows {
		resets := "-"
		if u.ResetsMS > 0 {
			resets = "in " + (time.Duration(u.ResetsMS) * time.Millisecond).Round(time.Second).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.0f%%\t%s\n", cmp.Or(u.Tenant, "-"), cmp.Or(u.Feature, "-"), u.Limit,
			amount(u.Used), amount(u.Amount), 100*u.Used/u.Amount, resets)
	}
	return w.Flush()
}

// amount writes a number without an exponent, and dollars to a hundredth of a cent.
func amount(n float64) string {
	return strconv.FormatFloat(float64(int64(n*1e4+0.5))/1e4, 'f', -1, 64)
}
