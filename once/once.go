package once

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Switches gives the kill switches as they are now.
type Switches interface {
	Current(ctx context.Context) (flags *kv.FlagSet, degraded bool)
}

// Config of a Once. Fields without a default are required.
type Config struct {
	Conn     *nats.Conn    // is not closed
	Requests *kv.Bucket    // the records; their TTL is the window in which a key counts
	Next     llm.Completer // makes the calls
	Switches Switches      // what is switched off is left to Next; nil: nothing is off
	Worker   string        // name of this worker, another one at each start

	Patience  time.Duration // silence after which the worker of a call counts as gone; default 3s
	MaxAnswer int           // bytes of the largest answer that is kept, as JSON; default 256 KiB
	Log       *slog.Logger
}

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Conn == nil || c.Requests == nil || c.Next == nil:
		return errors.New("once: Conn, Requests and Next must be set")
	case c.Worker == "":
		return errors.New("once: Worker must be set")
	case c.Patience < 0 || c.MaxAnswer < 0:
		return errors.New("once: Patience and MaxAnswer must not be negative")
	}
	return nil
}

// Once is a Completer in front of another. Requests without an idempotency key
// pass through.
type Once struct {
	cfg     Config
	calls   calls
	ready   chan struct{}              // closed when others can ask for calls of this worker
	errands chan func(context.Context) // for Run
	ended   chan struct{}              // closed when Run takes no more of them
}

var _ llm.Completer = (*Once)(nil)

// New checks the configuration. Requests with a key wait until Run runs.
func New(c Config) (*Once, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Patience = cmp.Or(c.Patience, 3*time.Second)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 256<<10)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Once{cfg: c, calls: calls{byToken: map[string]*call{}}, ready: make(chan struct{}),
		errands: make(chan func(context.Context)), ended: make(chan struct{})}, nil
}

// flushWithin bounds how long Run waits for the server to know of it.
const flushWithin = 2 * time.Second

// Run lets other workers follow the calls of this one, and keeps answers that
// could not be kept at once, until ctx ends, which must be after the last request. It must be called once.
func (o *Once) Run(ctx context.Context) error {
	sub, err := o.cfg.Conn.Subscribe(subjects.Follow(o.cfg.Worker), o.onFollow)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	flush, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	_ = o.cfg.Conn.FlushWithContext(flush) // without a connection the client subscribes when it has one
	close(o.ready)
	var errands sync.WaitGroup
	defer errands.Wait()
	defer close(o.ended)
	for {
		select {
		case errand := <-o.errands:
			errands.Go(func() { errand(ctx) })
		case <-ctx.Done():
			return nil
		}
	}
}

// later has Run do what its request does not wait for. It reports false when Run
// has ended.
func (o *Once) later(errand func(context.Context)) bool {
	select {
	case o.errands <- errand:
		return true
	case <-o.ended:
		return false
	}
}

// Complete answers req, with the answer of its key if there is one.
func (o *Once) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if req.IdempotencyKey == "" || o.off(ctx, req) {
		return o.cfg.Next.Complete(ctx, req)
	}
	return o.visit(req, nil, func(ctx context.Context, _ *call) (*llm.Response, error) {
		return o.cfg.Next.Complete(ctx, req)
	}).run(ctx)
}

// Stream answers req, with the frames of its key's call if one is under way.
func (o *Once) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	if req.IdempotencyKey == "" || o.off(ctx, req) {
		return o.cfg.Next.Stream(ctx, req)
	}
	return func(yield func(llm.Frame, error) bool) {
		v := &view{yield: yield, attempt: -1}
		resp, err := o.visit(req, v, func(ctx context.Context, c *call) (*llm.Response, error) {
			return o.forward(ctx, req, c, v)
		}).run(ctx)
		switch {
		case v.gone:
		case err != nil:
			yield(llm.Frame{}, err)
		default:
			v.finish(resp)
		}
	}
}

// forward shows the frames of the request's own call to its reader and to all
// who follow.
func (o *Once) forward(ctx context.Context, req *llm.Request, c *call, v *view) (*llm.Response, error) {
	for f, err := range o.cfg.Next.Stream(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case f.Type == llm.FrameError:
			return nil, f.Error
		case f.Type == llm.FrameEnd:
			return f.Response, nil
		}
		c.add(f)
		if !v.pass(f) {
			return nil, errGone
		}
	}
	return nil, errNoEnd
}

// off reports whether an operator switched off what the request asks for. A
// kept answer must not outlive that.
func (o *Once) off(ctx context.Context, req *llm.Request) bool {
	if o.cfg.Switches == nil {
		return false
	}
	flags, _ := o.cfg.Switches.Current(ctx)
	_, off := flags.Off(req.Feature, req.Tenant)
	return off
}

// calls are those that this worker makes, by token.
type calls struct {
	mu      sync.Mutex
	byToken map[string]*call
}

func (c *calls) add(token string) *call {
	made := &call{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byToken[token] = made
	return made
}

func (c *calls) get(token string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byToken[token]
}

func (c *calls) remove(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byToken, token)
}
