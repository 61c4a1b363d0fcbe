package chain

import (
	"context"
	"log/slog"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// Queue takes over requests that cannot be answered now.
type Queue interface {
	// Enqueue stores the request as a job that outlives this process, and says
	// where its answer will be. It returns when ctx ends at the latest.
	Enqueue(ctx context.Context, req *llm.Request) (*llm.Job, error)
}

// How long a caller waits while its request is stored. When its time is up
// already, it is to get the id before the bus answers for us.
const (
	queuePatience = 2 * time.Second
	lateQueue     = 200 * time.Millisecond
)

// handOver makes a job of the request; nil where there is none.
func (e *env) handOver(ctx context.Context, req *llm.Request) *llm.Job {
	if e.queue == nil || req.Job {
		return nil
	}
	patience := queuePatience
	if ctx.Err() != nil {
		patience = lateQueue
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	job, err := e.queue.Enqueue(ctx, req)
	if err != nil {
		e.log.LogAttrs(ctx, slog.LevelError, "request not handed over to a job", slog.String("id", req.ID), slog.String("feature", req.Feature), slog.Any("error", err))
		return nil
	}
	return job
}
