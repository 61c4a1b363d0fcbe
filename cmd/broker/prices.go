package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/config"
)

func newConfigPrices(io streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "prices [file]",
		Short: "Show the price of every model in use, and where it is from",
		Long: "Prices shows what a file's targets cost in US dollars per million tokens: as the file declares it, as this version of\n" +
			"the program ships it, with the day it was taken, or none, in which case their calls count as 0 dollars.",
		Example: "  broker config prices broker.yaml\n  broker config prices --json | jq '.[] | select(.from == \"none\")'",
		Args:    arguments(0, 1, "at most one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, _, err := readConfig(io.in, args)
			if err != nil {
				return err
			}
			return printPrices(io, pricesOf(cfg), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// priced is one model that some feature uses.
type priced struct {
	Provider    string  `json:"provider"`
	Model       string  `json:"model"`
	Input       float64 `json:"input"`        // US dollars per million tokens
	CachedInput float64 `json:"cached_input"` // the same
	Output      float64 `json:"output"`       // the same
	From        string  `json:"from"`
}

func pricesOf(cfg *config.Config) []priced {
	known := map[[2]string]bool{}
	list := []priced{}
	for i := range cfg.Features {
		for _, t := range cfg.Features[i].Targets {
			id := [2]string{t.Provider, t.Model}
			if known[id] {
				continue
			}
			known[id] = true
			p, from := cfg.Provider(t.Provider).Price(t.Model)
			list = append(list, priced{t.Provider, t.Model, p.Input, cachedInput(p), p.Output, from.String()})
		}
	}
	return list
}

// cachedInput is what cached input costs: as other input, unless that is known.
func cachedInput(p chain.Price) float64 {
	if p.CachedInput == 0 {
		return p.Input
	}
	return p.CachedInput
}

func printPrices(io streams, list []priced, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(io.out)
		e.SetIndent("", "  ")
		return e.Encode(list)
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tINPUT\tCACHED\tOUTPUT\tPRICE FROM")
	for _, p := range list {
		cells := []string{"-", "-", "-"}
		if p.From != (config.PriceFrom{}).String() {
			cells = []string{dollars(p.Input), dollars(p.CachedInput), dollars(p.Output)}
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\n", p.Provider, p.Model, cells[0], cells[1], cells[2], p.From)
	}
	return w.Flush()
}

func dollars(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
