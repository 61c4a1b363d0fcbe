package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/fleet"
)

// topPatience bounds how long the first picture waits for parts of it.
const topPatience = 3 * time.Second

// screen sequences: the other screen without a cursor and back, and one picture
// over the last without a flicker.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// top is one run of the top command.
type top struct {
	streams
	once, json bool
	interval   time.Duration
}

func newTop(io streams) *cobra.Command {
	t := &top{streams: io}
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the fleet: traffic, features, breakers, switches, workers",
		Long: "Top listens to the fleet and shows it until interrupted: requests, failovers and latency over the last minute, each feature's chain,\n" +
			"breakers with the time to their next probe, switches, workers, jobs and the last events. Counts begin when top begins.\n" +
			"Where the output is no terminal, it prints once.",
		Example: "  broker top\n  broker top --once\n  broker top --json | jq .traffic.requests_per_second\n  broker top --once --json | jq '.breakers[] | select(.state != \"closed\")'",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return t.run(c.Context()) },
	}
	c.Flags().BoolVar(&t.once, "once", false, "listen for one interval, print and end")
	c.Flags().BoolVar(&t.json, "json", false, "print JSON, a line for each picture")
	c.Flags().DurationVar(&t.interval, "interval", time.Second, "between two pictures: 100ms to 1h")
	return c
}

func (t *top) run(ctx context.Context) error {
	if t.interval < 100*time.Millisecond || t.interval > time.Hour {
		return usageError{errors.New("--interval must be 100ms to 1h")}
	}
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	changed := make(chan struct{}, 1)
	w, err := fleet.New(fleet.Config{Conn: nc, OnChange: func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	failed := make(chan error, 1)
	watching.Go(func() { failed <- w.Run(ctx) })
	err = t.show(ctx, w, changed, failed)
	if errors.Is(err, nats.ErrConnectionClosed) {
		return natsError{err}
	}
	return err
}

// show prints pictures until ctx ends or the watch fails.
func (t *top) show(ctx context.Context, w *fleet.Watch, changed <-chan struct{}, failed <-chan error) error {
	select {
	case <-w.Ready():
	case <-time.After(topPatience):
	case <-ctx.Done():
		return nil
	}
	where := terminalOf(t.out)
	once := t.once || !where.live && !t.json
	if where.live && !once && !t.json {
		fmt.Fprint(t.out, enterScreen)
		defer fmt.Fprint(t.out, leaveScreen)
	} else {
		changed = nil // every picture stays, so that they come at their interval only
	}
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for {
		if !once {
			if err := t.print(where, w.View()); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
			if once {
				return t.print(where, w.View())
			}
		case <-changed:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (t *top) print(where terminal, v *fleet.View) error {
	if t.json {
		return json.NewEncoder(t.out).Encode(v)
	}
	width, height := where.size()
	lines := draw(where, v, width)
	if !where.live || t.once {
		_, err := io.WriteString(t.out, strings.Join(lines, "\n")+"\n")
		return err
	}
	lines = lines[:min(len(lines), max(1, height-1))]
	_, err := io.WriteString(t.out, home+strings.Join(lines, clearLine+"\n")+clearLine+"\n"+clearRest)
	return err
}
