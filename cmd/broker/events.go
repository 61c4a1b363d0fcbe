package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/subjects"
)

// following is one run of the events command.
type following struct {
	streams
	where  terminal
	json   bool
	limit  int
	events []string
	wanted map[string]*string // by what an event must have there; empty is anything
}

func newEvents(io streams) *cobra.Command {
	f := &following{streams: io, where: terminalOf(io.out), wanted: map[string]*string{}}
	c := &cobra.Command{
		Use:   "events",
		Short: "Follow what happens: requests, failovers, breakers, switches",
		Long: "Events prints the events of the whole fleet as they happen, until interrupted or --limit is reached. What happened before is not kept.\n" +
			"docs/operations.md lists the events and their fields.",
		Example: "  broker events\n  broker events --event circuit_opened --event circuit_closed\n" +
			"  broker events --feature support --event request_failed --json | jq -r .code\n  broker events --limit 1 --event kill_switch_flipped",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	c.Flags().StringSliceVar(&f.events, "event", nil, "only events of this name; may be repeated")
	for _, w := range []struct{ name, help string }{
		{"feature", "only of this feature"}, {"provider", "only of this provider"}, {"model", "only of this model"},
		{"tenant", "only of this tenant, as events name it: the first 12 hex digits of its SHA-256"},
		{"request", "only of the request with this id"}, {"worker", "only from this worker"}, {"flag", "only of this switch"},
	} {
		f.wanted[w.name] = c.Flags().String(w.name, "", w.help)
	}
	c.Flags().IntVar(&f.limit, "limit", 0, "end after so many events; 0 goes on")
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON object for each event on a line, with all its fields")
	completeFlag(c, "event", words(eventNames()...))
	completeFlag(c, "feature", featureWords)
	return c
}

var eventName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (f *following) run(ctx context.Context) error {
	if f.limit < 0 {
		return usageError{errors.New("--limit must be 0 or more")}
	}
	for _, name := range f.events {
		if !eventName.MatchString(name) {
			return usageError{fmt.Errorf("--event: %q is no name of an event, such as circuit_opened", name)}
		}
	}
	f.warn()
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	sub, err := nc.SubscribeSync(subjects.Events)
	if err != nil {
		return err
	}
	for n := 0; f.limit == 0 || n < f.limit; {
		msg, err := fleet.NextEvent(ctx, sub)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrSlowConsumer):
			fmt.Fprintln(f.err, "events came faster than they could be printed, and some are lost")
			continue
		case errors.Is(err, nats.ErrConnectionClosed):
			return natsError{err}
		case errors.Is(err, nats.ErrPermissionViolation):
			return fmt.Errorf("follow events: this NATS user may not hear %s; log in as an operator", subjects.Events)
		case err != nil:
			return fmt.Errorf("follow events: %w", err)
		}
		e, err := fleet.DecodeEvent(msg.Data)
		if err != nil || !f.wants(e) {
			continue
		}
		if err := f.print(e, msg.Data); err != nil {
			return err
		}
		n++
	}
	return nil
}

// warn names what this version would wait for in vain; a later one may publish it.
func (f *following) warn() {
	known := eventNames()
	for _, name := range f.events {
		if !slices.Contains(known, name) {
			fmt.Fprintf(f.err, "no event of version %s is named %s; there are %s\n", version, name, strings.Join(known, ", "))
		}
	}
}

func (f *following) wants(e *fleet.Event) bool {
	has := map[string]string{"feature": e.Feature, "provider": e.Provider, "model": e.Model, "tenant": e.Tenant, "request": e.RequestID, "worker": e.Worker, "flag": e.Flag}
	for field, value := range f.wanted {
		if *value != "" && has[field] != *value {
			return false
		}
	}
	return len(f.events) == 0 || slices.Contains(f.events, e.Name)
}

// print writes one line. As JSON it is the event as it came, with fields that
// this program may not know.
func (f *following) print(e *fleet.Event, data []byte) error {
	if f.json {
		var line bytes.Buffer
		if err := json.Compact(&line, data); err != nil {
			return nil // cannot be: it was decoded before
		}
		line.WriteByte('\n')
		_, err := f.out.Write(line.Bytes())
		return err
	}
	var b strings.Builder
	for i, c := range eventCells(e) {
		width := []int{12, 24, 28, 0}[i]
		b.WriteString(f.where.paint(c.style, fmt.Sprintf("%-*s", width, printable(c.text))) + "  ")
	}
	_, err := io.WriteString(f.out, strings.TrimRight(b.String(), " ")+"\n")
	return err
}

// eventCells are the time, the name, what it is about and the rest.
func eventCells(e *fleet.Event) []cell {
	about := e.Feature
	if e.Provider != "" {
		target := e.Provider
		if e.Model != "" {
			target += "/" + e.Model
		}
		about = strings.TrimSpace(about + " " + target)
	}
	return []cell{{e.Time.Local().Format("15:04:05.000"), faint}, {e.Name, eventStyle(e.Name)}, {cmp.Or(e.Flag, about, e.Breaker), plain}, {details(e), plain}}
}

func details(e *fleet.Event) string {
	var list []string
	add := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	if e.On != nil {
		add(true, "%s", onOff(*e.On).text)
		add(e.Now, "now")
	}
	add(e.Code != "", "%s", e.Code)
	add(e.Class != "" && string(e.Class) != string(e.Code) && e.Class != "ok", "%s", e.Class)
	add(e.Limit != "", "%s", e.Limit)
	add(e.Why != "", "%s", e.Why)
	add(e.CoolDownMS > 0 && e.Name == "circuit_opened", "next probe in %s", time.Duration(e.CoolDownMS)*time.Millisecond)
	add(e.MS > 0, "%d ms", e.MS)
	add(e.FirstTokenMS > 0, "first token %d ms", e.FirstTokenMS)
	add(e.Attempts > 1, "%d attempts", e.Attempts)
	add(e.CostUSD > 0, "$%.6f", e.CostUSD)
	add(e.By != "", "by %s", e.By)
	add(e.Reason != "", "%q", e.Reason)
	add(e.Times > 1, "%d times", e.Times)
	add(e.Workers > 0, "%d workers", e.Workers)
	add(e.Tenant != "", "tenant %s", e.Tenant)
	add(e.RequestID != "", "%s", e.RequestID)
	return strings.Join(list, ", ")
}

func eventStyle(name string) style {
	switch {
	case strings.HasSuffix(name, "_failed"), strings.HasSuffix(name, "_exhausted"), strings.HasSuffix(name, "_opened"), strings.HasSuffix(name, "_interrupted"):
		return red
	case strings.HasPrefix(name, "failover_"), strings.HasPrefix(name, "limit_"), strings.HasSuffix(name, "_half_open"), strings.HasSuffix(name, "_flipped"):
		return amber
	case strings.HasSuffix(name, "_closed"), strings.HasSuffix(name, "_succeeded"):
		return green
	}
	return plain
}
