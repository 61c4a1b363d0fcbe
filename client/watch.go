package client

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// watch listens for the signs of life of the worker that makes a whole answer.
// The context it returns ends with stream.ErrSilent when there are none. What
// ends before that could happen is not watched and costs nothing. A client that
// has never heard a sign may not be allowed to: it waits for the first one, which
// a worker sends at once.
func (c *Client) watch(ctx context.Context, call *call) (watched context.Context, end func(), err error) {
	delete(call.header, subjects.HeaderPingMS)
	if deadline, _ := ctx.Deadline(); time.Until(deadline) <= c.silence {
		return ctx, func() {}, nil
	}
	call.askForPings(c.silence)
	watched, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	made := make(chan struct{})
	timer = time.AfterFunc(c.silence, func() {
		<-made
		if watched.Err() == nil && !c.nc.IsConnected() { // nobody can be heard
			timer.Reset(c.silence)
			return
		}
		cancel(stream.ErrSilent)
	})
	close(made)
	if !c.heard.Load() {
		timer.Stop()
	}
	sub, err := c.nc.Subscribe(subjects.Stream(c.tenant, call.id), func(*nats.Msg) {
		c.heard.Store(true)
		timer.Reset(c.silence)
	})
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, nil, c.translate(err, nil)
	}
	return watched, func() {
		cancel(nil)
		if n, _, err := sub.Pending(); err == nil && n > 0 { // the answer was as fast
			c.heard.Store(true)
		}
		_ = sub.Unsubscribe() // fails only with the connection
		timer.Stop()
	}, nil
}

// online waits until there is a connection: without one, silence is not the
// worker's, and what is sent would grow old in a buffer.
func (c *Client) online(ctx context.Context) error {
	status := c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.nc.RemoveStatusListener(status)
	switch {
	case c.nc.IsConnected():
		return nil
	case c.nc.IsClosed():
		return c.translate(nats.ErrConnectionClosed, nil)
	}
	select {
	case s := <-status:
		if s == nats.CLOSED {
			return llm.Errorf(llm.CodeUnavailable, "asking over NATS: %w", nats.ErrConnectionClosed)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
