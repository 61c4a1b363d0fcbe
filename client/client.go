package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// Client asks llmbus. It may be used by many goroutines at once.
type Client struct {
	nc           *nats.Conn
	timeout      time.Duration
	silence      time.Duration
	redispatches int
	admission    time.Duration // 0: the deadline's
	tenant       string        // in the subjects
	claim        string        // in a header

	heard atomic.Bool // signs of life reach this client
}

var _ llm.Completer = (*Client)(nil)

// New makes a Client over a connection, which the client does not close.
func New(nc *nats.Conn, opts ...Option) (*Client, error) {
	if nc == nil {
		return nil, fmt.Errorf("client: the connection must be set")
	}
	c := &Client{nc: nc, timeout: 5 * time.Minute, silence: 10 * time.Second, redispatches: 2}
	for _, opt := range opts {
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Complete publishes the request and waits for the whole answer. An empty
// req.ID is replaced by a random one.
func (c *Client) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	call, err := c.newCall(req, false)
	if err != nil {
		return nil, err
	}
	var resp *llm.Response
	err = c.retry(ctx, func() error {
		var err error
		resp, err = c.once(ctx, call)
		return err
	})
	return resp, err
}

// once sends the request once.
func (c *Client) once(ctx context.Context, call *call) (*llm.Response, error) {
	ctx, unwatch, err := c.watch(ctx, call)
	if err != nil {
		return nil, err
	}
	defer unwatch()
	msg, err := call.message(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := c.nc.RequestMsgWithContext(ctx, msg)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), stream.ErrSilent):
		c.cancel(call.id) // in case it lives and only the way from it is cut
		return nil, broken(context.Cause(ctx), false)
	case err != nil && ctx.Err() != nil:
		c.cancel(call.id)
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, c.translate(err, msg)
	}
	return decodeReply(reply)
}

// bound gives ctx a deadline if it has none.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.timeout, llm.ErrDeadline)
}

// cancel tells the workers to stop. It fails only with the connection, and then
// pings that nobody hears tell them.
func (c *Client) cancel(id string) { _ = c.nc.Publish(subjects.CancelOf(id, c.tenant), nil) }
