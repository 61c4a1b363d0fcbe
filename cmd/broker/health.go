package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/subjects"
)

// checkup is one run of the health command.
type checkup struct {
	streams
	json    bool
	url     string
	any     bool
	timeout time.Duration
}

func newHealth(io streams) *cobra.Command {
	h := &checkup{streams: io}
	c := &cobra.Command{
		Use:   "health",
		Short: "Tell by the exit code whether a worker answers; says nothing if one does",
		Long: "Health asks the worker of this machine or container over NATS, and fails if it does not answer or does not take requests.\n" +
			"It knows the worker by LLMBUS_WORKER_NAME or, without it, by the host's name. It is for images without a shell.",
		Example: "  broker health\n  broker health --any\n  broker health --url http://127.0.0.1:9090/stats",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if h.timeout <= 0 {
				return usageError{errors.New("--timeout must be above 0")}
			}
			if h.url != "" && (h.any || h.json) {
				return usageError{errors.New("--url asks no worker, so that --any and --json have no meaning with it")}
			}
			ctx, cancel := context.WithTimeout(c.Context(), h.timeout)
			defer cancel()
			if h.url != "" {
				return h.get(ctx)
			}
			return h.ask(ctx)
		},
	}
	c.Flags().StringVar(&h.url, "url", "", "get this HTTP address instead; any 2xx is health")
	c.Flags().BoolVar(&h.any, "any", false, "be content with any worker of the fleet")
	c.Flags().DurationVar(&h.timeout, "timeout", 2*time.Second, "the longest to wait")
	c.Flags().BoolVar(&h.json, "json", false, "print what the worker says of itself as JSON")
	return c
}

func (h *checkup) get(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return usageError{fmt.Errorf("--url: %w", err)}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is read
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers with status %d", h.url, resp.StatusCode)
	}
	return nil
}

// ask looks among all workers for the one of this place.
func (h *checkup) ask(ctx context.Context) error {
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	if err := nc.PublishRequest(subjects.Status, inbox, nil); err != nil {
		return err
	}
	var others []string
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("no worker is connected to %s", nc.ConnectedUrlRedacted())
		case err != nil:
			return fmt.Errorf("the worker of this place does not answer; others do: %s", cmp.Or(strings.Join(others, ", "), "none"))
		}
		var r report
		if json.Unmarshal(msg.Data, &r) != nil {
			continue
		}
		if !h.any && !ours(r.Details.Worker) {
			others = append(others, r.Details.Worker)
			continue
		}
		if h.json {
			if err := printJSON(h.out, r); err != nil {
				return err
			}
		}
		return able(r)
	}
}

// able is health itself: a full worker is well, one that ends is not.
func able(r report) error {
	if s := bus.State(r.State); s != bus.Joined && s != bus.Away {
		return fmt.Errorf("worker %s is %s", r.Details.Worker, s)
	}
	return nil
}

// ours reports whether a worker of that name runs in this place: it is called
// <LLMBUS_WORKER_NAME>-<start> or <host>-<process>-<start>.
func ours(worker string) bool {
	name, _, _ := cutLast(worker)
	if given := os.Getenv("LLMBUS_WORKER_NAME"); given != "" {
		return name == given
	}
	host, err := os.Hostname()
	name, _, _ = cutLast(name)
	return err == nil && name == host
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
