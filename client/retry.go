package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second

	prompt     = 2 // tries that do not wait for what a busy worker asks
	promptWait = 5 * time.Millisecond
)

// retry calls try until it succeeds, fails for good, or the next wait does not
// fit the deadline.
func retry(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if err == nil || !refused(err) {
			return err
		}
		wait := backoff(n, err)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// refused reports whether no worker has begun the request.
func refused(err error) bool {
	return errors.Is(err, llm.ErrBusy) || errors.Is(err, nats.ErrNoResponders)
}

// backoff is the wait before try n+1. A busy worker speaks for itself alone, and
// the next try most likely meets another, so that the first ones come soon. Then
// it is what the worker asked for, and on top a random part of a range that
// doubles, so that callers do not come back as one.
func backoff(n int, err error) time.Duration {
	spread := min(longestWait, firstWait<<min(max(0, n-prompt), 10))
	if n < prompt {
		spread = promptWait << (2 * n)
	}
	wait := time.Duration(rand.Int64N(int64(spread))) + time.Millisecond
	if e, ok := errors.AsType[*llm.Error](err); ok && n >= prompt {
		wait += e.RetryAfter()
	}
	return wait
}
