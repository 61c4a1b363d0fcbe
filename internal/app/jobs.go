package app

import (
	"context"

	"github.com/llmbus/llmbus/jobs"
)

// newJobs makes the part that takes background jobs until its context ends. They
// enter the same router as requests do.
func (w *worker) newJobs() (run func(context.Context) error, err error) {
	if w.env.JobSlots == 0 {
		return func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, nil
	}
	worker, err := jobs.New(jobs.Config{
		Conn: w.conn.Conn, Streams: w.streams, Completer: w.once, Policy: w.jobPolicy,
		Slots: w.env.JobSlots, MaxTimeout: w.env.MaxTimeout, Expiry: w.env.JobExpiry,
		Tenants: w.env.Tenants, TenantHeader: w.env.TenantHeader, Inboxes: w.env.inboxes(), Log: w.log,
	})
	if err != nil {
		return nil, err
	}
	return worker.Run, nil
}

// jobPolicy is that of the configuration in force.
func (w *worker) jobPolicy(feature string) jobs.Policy {
	for _, f := range w.policy.inForce.Load().Features {
		if f.Name == feature {
			return jobs.Policy{Backoff: f.Jobs.Backoff}
		}
	}
	return jobs.Policy{Backoff: jobs.DefaultBackoff()}
}
