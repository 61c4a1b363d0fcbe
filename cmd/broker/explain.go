package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/llm"
)

// hypothetical is a request that nobody sends.
type hypothetical struct {
	tenant, class, dataClass                   string
	stream, tools, forced, schema, image, link bool
	seed, noFailover, job                      bool
	maxTokens                                  int
}

func newExplain(io streams) *cobra.Command {
	var h hypothetical
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain <feature>",
		Short: "Show how a request would be routed now, without asking a provider",
		Long: "Explain reads the configuration, the switches and the breakers from KV and goes the way of a request up to its first\n" +
			"call: which target would be asked first, which if that fails, and why each of the others would not.\n" +
			"What only workers know is left out: their keys, and what tenants have used of their limits.",
		Example: "  broker explain support\n  broker explain support --data-class confidential --stream --tools\n  broker explain support --json | jq '.targets[] | select(.skipped)'",
		Args:    arguments(1, 1, "the name of a feature"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := h.validate(); err != nil {
				return err
			}
			env, err := environment()
			if err != nil {
				return err
			}
			nc, err := connect()
			if err != nil {
				return err
			}
			defer nc.Close()
			ctx, cancel := context.WithTimeout(c.Context(), toolPatience)
			defer cancel()
			e, err := app.Explain(ctx, env, nc, h.request(args[0]))
			if err != nil {
				return err
			}
			return printExplanation(io, e, asJSON)
		},
	}
	h.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (h *hypothetical) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&h.tenant, "tenant", "", "of this tenant")
	f.StringVar(&h.class, "class", "", "interactive, background or structured; default the feature's")
	f.StringVar(&h.dataClass, "data-class", "", "default the feature's")
	f.BoolVar(&h.stream, "stream", false, "streamed")
	f.BoolVar(&h.tools, "tools", false, "with tools")
	f.BoolVar(&h.forced, "tool-choice", false, "with a tool that must be called")
	f.BoolVar(&h.schema, "json-schema", false, "with a schema for the answer")
	f.BoolVar(&h.image, "image", false, "with an image")
	f.BoolVar(&h.link, "image-url", false, "with an image by its URL")
	f.BoolVar(&h.seed, "seed", false, "with a seed")
	f.IntVar(&h.maxTokens, "max-tokens", 0, "with this bound of the answer")
	f.BoolVar(&h.noFailover, "no-failover", false, "that asks the first usable target only")
	f.BoolVar(&h.job, "job", false, "as a background job")
}

// validate refuses what no request could be, and what would change nothing.
func (h *hypothetical) validate() error {
	switch llm.Class(h.class) {
	case "", llm.ClassInteractive, llm.ClassBackground, llm.ClassStructured:
	default:
		return usageError{fmt.Errorf("--class must be interactive, background or structured, not %q", h.class)}
	}
	if h.maxTokens < 0 {
		return usageError{errors.New("--max-tokens must be 0 or more")}
	}
	return nil
}

// request has what targets are chosen by, and no content.
func (h *hypothetical) request(feature string) *llm.Request {
	req := &llm.Request{Feature: feature, Tenant: h.tenant, Class: llm.Class(h.class), DataClass: h.dataClass, Stream: h.stream, MaxTokens: h.maxTokens,
		NoFailover: h.noFailover, Job: h.job}
	if h.job && h.class == "" {
		req.Class = llm.ClassBackground
	}
	if h.tools || h.forced {
		req.Tools = []llm.Tool{{Name: "tool"}}
	}
	if h.forced {
		req.ToolChoice = &llm.ToolChoice{Mode: llm.ToolChoiceRequired}
	}
	if h.schema {
		req.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage("true")}
	}
	if h.seed {
		req.Seed = new(int64(1))
	}
	var content llm.Content
	if h.image {
		content = append(content, llm.Part{Type: llm.PartImage, Image: &llm.ImageURL{URL: "data:image/png;base64,"}})
	}
	if h.link {
		content = append(content, llm.Part{Type: llm.PartImage, Image: &llm.ImageURL{URL: "https://example.com/image.png"}})
	}
	req.Messages = []llm.Message{{Role: llm.RoleUser, Content: content}}
	return req
}

func printExplanation(io streams, e *app.Explanation, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(io.out)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	}
	fmt.Fprintf(io.out, "feature %s, class %s, data class %s\n", e.Feature, e.Class, cmp.Or(e.DataClass, "none"))
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tVERDICT\tINPUT\tOUTPUT\tPRICE FROM")
	for _, t := range e.Targets {
		in, out := "-", "-"
		if t.PriceFrom != (config.PriceFrom{}).String() {
			in, out = dollars(t.Price.Input), dollars(t.Price.Output)
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\n", t.Provider, t.Model, verdict(t.Candidate), in, out, t.PriceFrom)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if e.Code != "" {
		fmt.Fprintf(io.out, "no target would be asked: %s: %s\n", e.Code, e.Reason)
	}
	if len(e.Fallbacks) > 0 {
		fmt.Fprintf(io.out, "if no target serves: %s\n", joined(e.Fallbacks))
	}
	if e.Degraded {
		fmt.Fprintln(io.out, "switches could not be read anew and may be old")
	}
	return nil
}

// verdict says in words what would become of a target.
func verdict(c chain.Candidate) string {
	text := "skipped: " + string(c.Skip)
	switch {
	case c.Skip == "" && c.Turn == 1:
		text = "asked first"
	case c.Skip == "":
		text = fmt.Sprintf("asked as number %d, if those before it fail", c.Turn)
	}
	if c.Detail != "" {
		text += " (" + c.Detail + ")"
	}
	return text
}

func joined(modes []llm.FallbackMode) string {
	words := make([]string, len(modes))
	for i, m := range modes {
		words[i] = string(m)
	}
	return strings.Join(words, ", then ")
}
