package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/agents"
	"github.com/llmbus/llmbus/audit"
	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/once"
	"github.com/llmbus/llmbus/replay"
	"github.com/llmbus/llmbus/telemetry"
	"github.com/llmbus/llmbus/usage"
)

// replayPatience bounds how long the store of frames is waited for.
const replayPatience = 10 * time.Second

// readPatience bounds how long the first read of the buckets may take.
const readPatience = 30 * time.Second

var errSlowStart = fmt.Errorf("flags and configuration could not be read within %s; is JetStream well? (nats server report jetstream)", readPatience)

// worker is all parts behind one connection.
type worker struct {
	*App
	conn     *connection
	flags    *kv.Flags
	breakers *breaker.Group
	router   *chain.Router
	once     *once.Once
	policy   *policy
	replay   bus.Replay // nil where JetStream has no room for it
	events   *events
	streams  *jobs.Streams
	usage    *usage.Usage
	limiter  *limits.Limiter
	audit    *audit.Log
	door     *door // nil unless HTTP is served

	telemetry *telemetry.Telemetry // nil where nobody asks
	bus       atomic.Pointer[bus.Worker]
	agents    atomic.Pointer[agents.Face] // nil unless features are shown as agents
	depth     depth
}

func newWorker(ctx context.Context, a *App, conn *connection, src source) (*worker, error) {
	w := &worker{App: a, conn: conn, events: newEvents(conn.Conn, a.name)}
	js, err := jetstream.New(conn.Conn)
	if err != nil {
		return nil, err
	}
	options := kv.Options{Replicas: a.env.KVReplicas, CacheTTL: a.env.CacheTTL, RequestTTL: a.env.IdempotencyTTL, UsageTTL: a.env.UsageTTL}
	buckets, err := openBuckets(ctx, conn.Conn, options)
	if err != nil {
		return nil, err
	}
	if w.streams, err = jobs.Open(ctx, js, buckets.Jobs, jobs.StreamOptions{Options: options, AckWait: a.env.JobAckWait, ResultTTL: a.env.ResultTTL}); err != nil {
		return nil, err
	}
	w.replay = openReplay(ctx, a, js)
	if w.flags, err = kv.NewFlags(buckets.Flags, kv.FlagsConfig{Log: a.log, OnChange: w.flagsChanged}); err != nil {
		return nil, err
	}
	w.breakers, err = breaker.New(breaker.Config{Conn: conn.Conn, Buckets: buckets, Worker: a.name, Log: a.log, OnChange: w.circuitChanged})
	if err != nil {
		return nil, err
	}
	if w.usage, err = usage.New(usage.Config{Bucket: buckets.Usage, Worker: a.name, Log: a.log}); err != nil {
		return nil, err
	}
	w.audit, err = audit.New(audit.Config{Conn: conn.Conn, Worker: a.name, Buckets: options, MaxAge: a.env.AuditTTL, MaxBytes: a.env.AuditBytes, Log: a.log})
	if err != nil {
		return nil, err
	}
	if err = w.newTelemetry(ctx); err != nil {
		return nil, err
	}
	if w.limiter, err = newLimiter(a, js, buckets.Slots, options); err != nil {
		return nil, err
	}
	w.router = chain.NewRouter(chain.Config{Switches: w.flags, Limiter: w.limiter, Cache: kv.NewCache(buckets.Cache), Queue: jobs.NewQueue(js, a.env.Tenants), Observer: w.observer(), Followers: w.followers(), Auditor: w.audit, Log: w.requestLog()})
	w.once, err = once.New(once.Config{Conn: conn.Conn, Requests: buckets.Requests, Next: w.router, Switches: w.flags, Worker: a.name, Log: a.log})
	if err != nil {
		return nil, err
	}
	w.policy, err = newPolicy(w, src, buckets.Features)
	return w, err
}

// openBuckets opens all buckets, or says what the server lacks.
func openBuckets(ctx context.Context, nc *nats.Conn, o kv.Options) (*kv.Buckets, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	buckets, err := kv.Open(ctx, js, o)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("the NATS server offers no JetStream, which llmbus needs; start it with -js, or enable it for the account: %w", err)
	}
	return buckets, err
}

// openReplay opens the store of frames. Without it a worker serves all but
// readers that come back, so that a server without memory for it is no obstacle.
func openReplay(ctx context.Context, a *App, js jetstream.JetStream) bus.Replay {
	ctx, cancel := context.WithTimeout(ctx, replayPatience)
	defer cancel()
	store, err := replay.Open(ctx, js, replay.Options{MaxAge: a.env.ReplayTTL, MaxBytes: a.env.ReplayBytes, Replicas: a.env.KVReplicas})
	if err != nil {
		a.log.Warn("frames are not kept, so that resumable streams are ordinary ones", "error", err)
		return nil
	}
	return store
}

func (w *worker) flagsChanged(flags *kv.FlagSet, flips []kv.Flip) {
	w.router.Cut(flags)
	w.events.flips(flips)
	w.countFlips(flips)
}

func (w *worker) newBus() (*bus.Worker, error) {
	return bus.New(bus.Config{
		Conn: w.conn.Conn, LameDuck: w.conn.lame, Completer: w.once, Replay: w.replay, Slots: w.env.Pool, MaxTimeout: w.env.MaxTimeout, Grace: w.env.ShutdownGrace,
		Tenants: w.env.Tenants, TenantHeader: w.env.TenantHeader, Inboxes: w.env.inboxes(),
		Version: w.opts.Version, Features: w.router.Features(), Status: w.status, Log: w.log,
	})
}

// run serves until ctx ends or a part fails. ready is called when requests are
// taken.
func (w *worker) run(ctx context.Context, ready func()) error {
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// What requests in flight use outlives the intake.
	support, end := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	defer w.endTelemetry(w.telemetry)
	defer w.events.flush()
	defer parts.Wait()
	defer end()
	start := func(name string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(support); err != nil {
				fail(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	start("connection", w.watch)
	start("usage", w.usage.Run)
	start("limits", w.limiter.Run)
	start("audit", w.audit.Run)
	start("metrics", func(ctx context.Context) error { return w.serveMetrics(ctx, w.telemetry) })
	start("flags", w.flags.Run)
	start("idempotency", w.once.Run)
	start("breakers", w.breakers.Run)
	start("configuration", w.policy.follow)

	err := w.serveRequests(running, &parts, ready)
	if ctx.Err() == nil { // nobody asked for the end
		err = errors.Join(context.Cause(running), err)
	}
	return err
}

// serveRequests takes requests under the configuration in force.
func (w *worker) serveRequests(ctx context.Context, parts *sync.WaitGroup, ready func()) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	b, err := w.newBus()
	if err != nil {
		return err
	}
	w.bus.Store(b)
	j, err := w.newJobs()
	if err != nil {
		return err
	}
	door, err := w.newDoor()
	if err != nil {
		return err
	}
	face, err := w.newAgents()
	if err != nil {
		return err
	}
	parts.Go(func() {
		if w.joined(ctx, b) {
			ready()
		}
	})
	return together(ctx, b.Run, j, door, face)
}

// together runs parts until ctx ends or one of them does, and then waits for
// the others.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer end()
			errs[i] = part(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// begin waits until flags and configuration are known.
func (w *worker) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readPatience, errSlowStart)
	defer cancel()
	select {
	case <-w.flags.Ready():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return w.policy.begin(ctx)
}

// joined waits until the server knows that this worker takes requests.
func (w *worker) joined(ctx context.Context, b *bus.Worker) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for b.State() == bus.Starting {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return w.conn.FlushWithContext(ctx) == nil
}

// watch fails when the connection is closed for good.
func (w *worker) watch(ctx context.Context) error {
	select {
	case <-w.conn.closed:
		return w.conn.lost()
	case <-ctx.Done():
		return nil
	}
}
