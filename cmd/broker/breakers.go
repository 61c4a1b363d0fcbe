package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/subjects"
)

// gatherTime is how long workers have to answer a question to all of them.
const gatherTime = 300 * time.Millisecond

func newBreakers(io streams) *cobra.Command {
	var watch, asJSON bool
	c := &cobra.Command{
		Use:   "breakers",
		Short: "Show the circuit breakers as the workers see them",
		Long: "Breakers asks every worker and prints a table: the state, why, for how long, the failures in the window, when a call\n" +
			"may be admitted again, and how many of the workers see it so.",
		Example: "  broker breakers\n  broker breakers --watch\n  broker breakers --json | jq '.[] | select(.state != \"closed\")'",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			nc, err := connect()
			if err != nil {
				return err
			}
			defer nc.Close()
			v := &breakerView{streams: io, nc: nc, json: asJSON}
			if watch {
				return v.watch(c.Context())
			}
			return v.show(c.Context())
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "go on printing every change until interrupted")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON; with --watch, a line for each change")
	return c
}

type breakerView struct {
	streams
	nc   *nats.Conn
	json bool
}

// seen is one breaker in one state, and at how many workers.
type seen struct {
	breaker.Status
	Workers int `json:"workers"` // that see it so
	Of      int `json:"of"`      // that know it
}

func (v *breakerView) show(ctx context.Context) error {
	reports, err := gather(ctx, v.nc, 0)
	if err != nil {
		return err
	}
	list := tally(reports)
	if v.json {
		return printJSON(v.out, list)
	}
	w := tabwriter.NewWriter(v.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BREAKER\tSTATE\tWHY\tFOR\tFAILURES\tNEXT CALL\tWORKERS")
	for _, s := range list {
		next := "now"
		if s.State != breaker.Closed {
			next = "in " + (time.Duration(s.RetryMS) * time.Millisecond).Round(100*time.Millisecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%d/%d\n", name(s.Key), s.State, cmp.Or(s.Why, "-"),
			time.Since(s.Since).Round(time.Second), s.Failures, next, s.Workers, s.Of)
	}
	return w.Flush()
}

// name writes a breaker's key as people write a target.
func name(key string) string {
	provider, model, ok := subjects.ParseBreakerKey(key)
	switch {
	case !ok:
		return key
	case model == "":
		return provider
	}
	return provider + "/" + model
}

// report is what one worker says.
type report struct {
	State   string     `json:"state"`
	Details app.Status `json:"details"`
}

// gather asks all workers, and returns when enough have answered, if enough is
// not 0, or when their time is up.
func gather(ctx context.Context, nc *nats.Conn, enough int) ([]report, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection is closed soon
	if err := nc.PublishRequest(subjects.Status, inbox, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	var reports []report
	for enough == 0 || len(reports) < enough {
		msg, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders), err != nil && len(reports) == 0:
			return nil, fmt.Errorf("no worker answers on %s; start one with %q", nc.ConnectedUrlRedacted(), command())
		case err != nil:
			return reports, nil
		}
		var r report
		if json.Unmarshal(msg.Data, &r) == nil {
			reports = append(reports, r)
		}
	}
	return reports, nil
}

// tally counts which workers see each breaker in which state.
func tally(reports []report) []seen {
	known := map[string]int{}
	index := map[string]int{} // by key and state
	var list []seen
	for _, r := range reports {
		for _, b := range r.Details.Breakers {
			known[b.Key]++
			at := b.Key + " " + string(b.State)
			i, ok := index[at]
			if !ok {
				i = len(list)
				index[at] = i
				list = append(list, seen{Status: b})
			}
			list[i].Workers++
			list[i].Failures = max(list[i].Failures, b.Failures)
		}
	}
	for i := range list {
		list[i].Of = known[list[i].Key]
	}
	slices.SortFunc(list, func(a, b seen) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(b.Workers, a.Workers))
	})
	return list
}

// watch prints the table and then every change that is stored.
func (v *breakerView) watch(ctx context.Context) error {
	sub, err := v.nc.SubscribeSync(subjects.BreakerChanges)
	if err != nil {
		return err
	}
	if !v.json {
		if err := v.show(ctx); err != nil {
			return err
		}
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch breakers: %w", err)
		}
		if err := v.change(msg); err != nil {
			return err
		}
	}
}

// change prints one stored transition. A message without a record is the
// marker of a deletion.
func (v *breakerView) change(msg *nats.Msg) error {
	key := strings.TrimPrefix(msg.Subject, subjects.BreakerPrefix)
	record, err := breaker.DecodeRecord(msg.Data)
	if err != nil && len(msg.Data) > 0 {
		fmt.Fprintf(v.err, "%s: %v\n", name(key), err)
		return nil
	}
	if v.json {
		return json.NewEncoder(v.out).Encode(struct {
			Key string `json:"key"`
			breaker.Record
		}{key, record})
	}
	_, err = fmt.Fprintf(v.out, "%s  %s  %s  %s  generation %d\n", time.Now().Format("15:04:05.000"), name(key),
		cmp.Or(string(record.State), "deleted"), cmp.Or(printable(record.Why), "-"), record.Generation)
	return err
}
