package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/audit"
	"github.com/llmbus/llmbus/chain"
)

func newAudit(io streams) *cobra.Command {
	v := &auditView{streams: io}
	var since time.Duration
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show how past requests were routed",
		Long: "Audit prints the newest records of the stream LLM_AUDIT: who asked, under which data class, which targets were called,\n" +
			"and why each of the others was not. Tenants are digests, as in logs. Records are kept while data_rules with\n" +
			"audit are in force.",
		Example: "  broker audit\n  broker audit --feature support --since 24h --refused\n  broker audit --since 720h --limit 100000 --json > november.jsonl",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case v.limit < 1:
				return usageError{errors.New("--limit must be 1 or more")}
			case since <= 0:
				return usageError{errors.New("--since must be a time with its unit, such as 24h")}
			}
			v.query.Since = time.Now().Add(-since)
			return v.show(c.Context())
		},
	}
	c.Flags().StringVar(&v.query.Feature, "feature", "", "of this feature only")
	c.Flags().DurationVar(&since, "since", time.Hour, "how far to look back")
	c.Flags().IntVar(&v.limit, "limit", 100, "the newest, at most")
	c.Flags().BoolVar(&v.refused, "refused", false, "only requests that got an error")
	c.Flags().BoolVar(&v.json, "json", false, "print a JSON object for each record on a line")
	return c
}

type auditView struct {
	streams
	query         audit.Query
	limit         int
	refused, json bool
}

func (v *auditView) show(ctx context.Context) error {
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(toolPatience))
	if err != nil {
		return err
	}
	var newest []audit.Record
	for r, err := range audit.Read(ctx, js, v.query) {
		if err != nil {
			return err
		}
		if v.refused && r.Code == "" {
			continue
		}
		if newest = append(newest, r); len(newest) >= 2*v.limit { // let go of the older half now and then
			newest = append(newest[:0:0], newest[len(newest)-v.limit:]...)
		}
	}
	return v.print(newest[max(0, len(newest)-v.limit):])
}

func (v *auditView) print(records []audit.Record) error {
	if v.json {
		e := json.NewEncoder(v.out)
		for i := range records {
			if err := e.Encode(&records[i]); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(v.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tREQUEST\tFEATURE\tTENANT\tDATA CLASS\tEND\tTARGETS")
	for i := range records {
		r := &records[i]
		end := string(r.Code)
		if end == "" {
			end = string(cmp.Or(string(r.Fallback), string(r.ServedBy)))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Time.Local().Format(time.DateTime), r.RequestID, r.Feature, cmp.Or(r.Tenant, "-"),
			cmp.Or(r.DataClass, "-"), end, fates(r.Targets))
	}
	return w.Flush()
}

// fates says of each target what became of it.
func fates(targets []chain.Candidate) string {
	list := make([]string, len(targets))
	for i, t := range targets {
		fate := string(cmp.Or(string(t.Outcome), string(t.Skip)))
		if t.Calls > 1 {
			fate += fmt.Sprintf(" after %d calls", t.Calls)
		}
		if t.Detail != "" {
			fate += " (" + t.Detail + ")"
		}
		list[i] = t.Provider + "/" + t.Model + ": " + fate
	}
	return strings.Join(list, "; ")
}
