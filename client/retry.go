package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second

	prompt     = 2 // tries that do not wait for what a busy worker asks
	promptWait = 5 * time.Millisecond

	// afterCancel lets the cancel of a lost request pass before the same id is sent
	// again: workers look twice for what a cancel may have overtaken.
	afterCancel = 250 * time.Millisecond
)

// retry calls try until it succeeds, fails for good, or the next wait does not
// fit the deadline.
func (c *Client) retry(ctx context.Context, try func() error) error {
	redispatches, began := c.redispatches, time.Now()
	for n := 0; ; n++ {
		err := try()
		var wait time.Duration
		switch {
		case err == nil:
			return nil
		case refused(err):
			if wait = backoff(n, err); c.admission > 0 && time.Since(began)+wait > c.admission {
				return err
			}
		case vanished(err) && redispatches > 0:
			redispatches--
			wait = afterCancel + rand.N(firstWait)
			if err := c.online(ctx); err != nil {
				return err
			}
		default:
			return err
		}
		if !fits(ctx, wait) {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// fits reports whether there is time left after a wait.
func fits(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > wait
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// vanished reports whether the worker is gone and nothing of the answer came.
func vanished(err error) bool {
	return errors.Is(err, stream.ErrSilent) && errors.Is(err, llm.ErrUnavailable)
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
