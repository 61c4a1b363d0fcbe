package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func newJobs(io streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List, show, cancel and replay background jobs",
		Long: "A job is a request published to " + subjects.Job("<feature>") + ". It waits in the LLM_JOBS stream until its answer is in LLM_RESULTS,\n" +
			"or its dead letter in LLM_DEAD.",
		Example: "  broker jobs list\n  broker jobs show 7QK2 --tenant acme\n  broker jobs cancel 7QK2\n  broker jobs replay 7QK2\n  broker jobs replay --feature support\n  broker jobs replay --all",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("%s needs list, show, cancel or replay; see %s --help", c.CommandPath(), c.CommandPath())}
		},
	}
	var tenant string
	c.PersistentFlags().StringVar(&tenant, "tenant", "", "of this tenant only; without it, whoever's the job is")
	c.AddCommand(newJobsList(io, &tenant), newJobsShow(io, &tenant), newJobsCancel(io, &tenant), newJobsReplay(io, &tenant))
	return c
}

// withJobs calls f with the streams that the workers made.
func withJobs(ctx context.Context, f func(context.Context, *jobs.Streams) error) error {
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(toolPatience))
	if err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	buckets, err := kv.Bind(bound, js)
	if err != nil {
		return err
	}
	s, err := jobs.Bind(bound, js, buckets.Jobs)
	if err != nil {
		return err
	}
	return f(ctx, s)
}

func newJobsList(io streams, tenant *string) *cobra.Command {
	var feature string
	var limit int
	var asJSON, dead bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the jobs that wait and those that were given up",
		Example: "  broker jobs list --feature support\n  broker jobs list --dead --json | jq -r .id",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError{errors.New("--limit must be 1 or more")}
			}
			return withJobs(c.Context(), func(ctx context.Context, s *jobs.Streams) error {
				l := &jobList{streams: io, limit: limit, json: asJSON}
				return l.print(ctx, s, jobs.Of{Feature: feature, Tenant: *tenant}, dead)
			})
		},
	}
	c.Flags().StringVar(&feature, "feature", "", "of this feature only")
	completeFlag(c, "feature", featureWords)
	c.Flags().BoolVar(&dead, "dead", false, "only those that were given up")
	c.Flags().IntVar(&limit, "limit", 1000, "of each kind, at most")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each job on a line")
	return c
}

// jobList prints jobs as they are read.
type jobList struct {
	streams
	limit int
	json  bool
	table *tabwriter.Writer
}

func (l *jobList) print(ctx context.Context, s *jobs.Streams, of jobs.Of, dead bool) error {
	l.table = tabwriter.NewWriter(l.out, 0, 0, 2, ' ', 0)
	if !l.json {
		fmt.Fprintln(l.table, "JOB\tFEATURE\tSTATE\tAGE\tTRIES\tLAST\tTENANT")
	}
	n := 0
	for w, err := range s.Waiting(ctx, of) {
		if err != nil {
			return err
		}
		if n++; dead || n > l.limit {
			break
		}
		if err := l.line(w, w.Tenant, w.ID, w.Feature, waitingState(w), w.Published, w.Tries+w.Waits, w.Last); err != nil {
			return err
		}
	}
	n = 0
	for d, err := range s.Dead(ctx, of) {
		if err != nil {
			return err
		}
		if n++; n > l.limit {
			break
		}
		d.Request = nil // what was asked is for show --request alone
		if err := l.line(d, d.Tenant, d.ID, d.Feature, "dead", d.Published, d.Tries+d.Waits, d.Error.Code); err != nil {
			return err
		}
	}
	return l.table.Flush()
}

func waitingState(w *jobs.Waiting) string {
	switch {
	case w.Cancelled:
		return "cancelled"
	case w.Tries+w.Waits > 0:
		return "retried"
	}
	return "queued"
}

func (l *jobList) line(job any, tenant, id, feature, state string, published time.Time, tries int, last llm.Code) error {
	if l.json {
		return json.NewEncoder(l.out).Encode(struct {
			State string `json:"state"`
			Job   any    `json:"job"`
		}{state, job})
	}
	if last == "" {
		last = "-"
	}
	line := fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s", printable(id), printable(feature), state, time.Since(published).Round(time.Second), tries, last)
	if tenant != "" {
		line += "\t" + printable(tenant)
	}
	_, err := fmt.Fprintln(l.table, line)
	return err
}

func newJobsShow(io streams, tenant *string) *cobra.Command {
	var request bool
	c := &cobra.Command{
		Use:     "show <job-id>",
		Short:   "Show what has become of a job",
		Long:    "Show prints the answer of a job, its dead letter with every attempt, or how often it was tried so far.",
		Example: "  broker jobs show 7QK2 | jq .dead.error",
		Args:    arguments(1, 1, "the id of a job"),
		RunE: func(c *cobra.Command, args []string) error {
			return withJobs(c.Context(), func(ctx context.Context, s *jobs.Streams) error {
				found, err := findJob(ctx, s, *tenant, args[0], request)
				if err != nil {
					return err
				}
				return printJSON(io.out, found)
			})
		},
	}
	c.Flags().BoolVar(&request, "request", false, "of a dead letter, show what was asked as well")
	return c
}

// jobState is one job, wherever it is.
type jobState struct {
	State string           `json:"state"`
	Job   *jobs.Waiting    `json:"job,omitempty"`
	Dead  *jobs.DeadLetter `json:"dead,omitempty"`
	Done  *llm.Response    `json:"result,omitempty"`
}

// findJob looks into the queue first: what has left it is stored elsewhere.
func findJob(ctx context.Context, s *jobs.Streams, tenant, id string, request bool) (*jobState, error) {
	for w, err := range s.Waiting(ctx, jobs.Of{Tenant: tenant}) {
		if err != nil {
			return nil, err
		}
		if w.ID == id {
			return &jobState{State: waitingState(w), Job: w}, nil
		}
	}
	resp, err := s.Result(ctx, tenant, id)
	if err == nil {
		return &jobState{State: "done", Done: resp}, nil
	}
	if !errors.Is(err, jobs.ErrUnknownJob) {
		return nil, err
	}
	d, err := findDead(ctx, s, tenant, id)
	if err != nil {
		return nil, err
	}
	if !request {
		d.Request = nil
	}
	return &jobState{State: "dead", Dead: d}, nil
}

func findDead(ctx context.Context, s *jobs.Streams, tenant, id string) (*jobs.DeadLetter, error) {
	for d, err := range s.Dead(ctx, jobs.Of{Tenant: tenant}) {
		if err != nil {
			return nil, err
		}
		if d.ID == id {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%w: %s; see %s jobs list", jobs.ErrUnknownJob, id, command())
}

func newJobsCancel(io streams, tenant *string) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel <job-id>…",
		Short: "End jobs that wait or are in hand",
		Long: "Cancel ends a job that a worker has in hand at once, and any other when its turn comes, before a provider is asked.\n" +
			"It gets a dead letter with the code cancelled.",
		Example: "  broker jobs cancel 7QK2\n  broker jobs cancel $(broker jobs list --json | jq -r .job.id)",
		Args:    arguments(1, 1000, "the id of a job"),
		RunE: func(c *cobra.Command, args []string) error {
			return withJobs(c.Context(), func(ctx context.Context, s *jobs.Streams) error {
				bar := newProgress(io.err, "cancelled", len(args))
				defer bar.end()
				for _, id := range args {
					if err := s.Cancel(ctx, *tenant, id); err != nil {
						return fmt.Errorf("%w: %s; see %s jobs list", err, id, command())
					}
					bar.step()
				}
				return nil
			})
		},
	}
}

func newJobsReplay(io streams, tenant *string) *cobra.Command {
	var feature string
	var all bool
	c := &cobra.Command{
		Use:     "replay [<job-id>…]",
		Short:   "Put jobs that were given up back into the queue",
		Long:    "Replay puts a dead letter's job back into the queue, with all its tries before it, and removes the dead letter.",
		Example: "  broker jobs replay 7QK2\n  broker jobs replay --feature support\n  broker jobs replay --all",
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) > 0) == (all || feature != "") || all && feature != "" {
				return usageError{fmt.Errorf("%s needs ids of jobs, --feature or --all; see %s --help", c.CommandPath(), c.CommandPath())}
			}
			return withJobs(c.Context(), func(ctx context.Context, s *jobs.Streams) error {
				if len(args) > 0 {
					return replayEach(ctx, io, s, len(args), lettersOf(ctx, s, *tenant, args))
				}
				of := jobs.Of{Feature: feature, Tenant: *tenant}
				total, err := s.CountDead(ctx, of)
				if err != nil {
					return err
				}
				return replayEach(ctx, io, s, total, s.Dead(ctx, of))
			})
		},
	}
	c.Flags().StringVar(&feature, "feature", "", "all dead letters of this feature")
	completeFlag(c, "feature", featureWords)
	c.Flags().BoolVar(&all, "all", false, "all dead letters")
	return c
}

// replayEach goes on after a letter that cannot be replayed, and fails in the end.
func replayEach(ctx context.Context, io streams, s *jobs.Streams, total int, letters iter.Seq2[*jobs.DeadLetter, error]) error {
	bar := newProgress(io.err, "replayed", total)
	defer bar.end()
	var errs []error
	for d, err := range letters {
		if err == nil {
			err = s.Replay(ctx, d)
		}
		switch {
		case err == nil:
			bar.step()
		case errors.Is(err, jobs.ErrNoRequest):
			errs = append(errs, err)
		default:
			return err
		}
	}
	return errors.Join(errs...)
}

// lettersOf finds dead letters by the ids of their jobs.
func lettersOf(ctx context.Context, s *jobs.Streams, tenant string, ids []string) iter.Seq2[*jobs.DeadLetter, error] {
	return func(yield func(*jobs.DeadLetter, error) bool) {
		for _, id := range ids {
			if !yield(findDead(ctx, s, tenant, id)) {
				return
			}
		}
	}
}
