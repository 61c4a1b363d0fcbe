package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Worker takes jobs from the queue.
type Worker struct {
	*Streams
	cfg     Config
	log     *slog.Logger
	ackWait time.Duration
	clock   clock
	active  active
	quiet   chan struct{} // closed when the server sends this worker no more jobs
}

// New checks the configuration. Nothing is taken before Run.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Worker{
		Streams: cfg.Streams, cfg: cfg, log: cfg.Log, ackWait: cfg.Streams.consumer.CachedInfo().Config.AckWait,
		quiet:  make(chan struct{}),
		active: active{byKey: make(map[string]context.CancelCauseFunc)},
	}, nil
}

const (
	pullFor    = 5 * time.Second        // how long one request for jobs stays with the server
	pullMost   = 100                    // jobs in one request
	pullAgain  = 250 * time.Millisecond // after one that failed; doubled each time
	pullSeldom = 5 * time.Second        // but no more than this
)

// Run works until ctx ends. Then it breaks off the calls under way and gives
// their jobs back. It returns nil after an orderly end. It must be called once.
func (w *Worker) Run(ctx context.Context) error {
	cancels := subjects.Cancels
	if w.cfg.Tenants {
		cancels = subjects.TenantCancels
	}
	sub, err := w.cfg.Conn.Subscribe(cancels, w.onCancel)
	if err != nil {
		return fmt.Errorf("subscribing to %s: %w", cancels, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { w.clock.follow(ctx, w.consumer) })
	defer w.hush()
	slots, again := make(chan struct{}, w.cfg.Slots), pullAgain
	for {
		n := reserve(ctx, slots)
		if n == 0 {
			return nil
		}
		taken, err := w.pull(ctx, n, func(msg jetstream.Msg) {
			parts.Go(func() {
				defer func() { <-slots }()
				w.work(ctx, msg)
			})
		})
		for range n - taken {
			<-slots
		}
		if err == nil || ctx.Err() != nil {
			again = pullAgain
			continue
		}
		w.log.Warn("jobs cannot be taken", "error", err)
		sleep(ctx, again)
		again = min(2*again, pullSeldom)
	}
}

// reserve waits for a free slot and takes all that are free, up to pullMost. It
// returns 0 when ctx ends.
func reserve(ctx context.Context, slots chan struct{}) int {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	if ctx.Err() != nil {
		return 0
	}
	for n := 1; n < pullMost; n++ {
		select {
		case slots <- struct{}{}:
		default:
			return n
		}
	}
	return pullMost
}

// pull asks for up to n jobs and hands on what comes within a while.
func (w *Worker) pull(ctx context.Context, n int, take func(jetstream.Msg)) (taken int, err error) {
	pulling, cancel := context.WithTimeout(ctx, pullFor)
	defer cancel()
	batch, err := w.consumer.Fetch(n, jetstream.FetchContext(pulling))
	if err != nil {
		return 0, err
	}
	for msg := range batch.Messages() {
		taken++
		take(msg)
	}
	if pulling.Err() != nil {
		return taken, nil
	}
	return taken, batch.Error()
}

// hush waits until the server knows that nobody listens for its last answer to
// a pull, so that a job that is given back does not come to this worker again,
// where it would wait for AckWait. The client says so just after it has closed
// the batch, hence the second round trip.
func (w *Worker) hush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range 2 {
		_ = w.cfg.Conn.FlushWithContext(ctx) // without a connection there is nothing to wait for
	}
	close(w.quiet)
}

// onCancel stops a job in hand.
func (w *Worker) onCancel(msg *nats.Msg) {
	if id, tenant, ok := subjects.ParseCancel(msg.Subject); ok {
		w.active.cancel(subjects.JobKey(tenant, id))
	}
}

// active holds the jobs in hand by their key.
type active struct {
	mu    sync.Mutex
	byKey map[string]context.CancelCauseFunc
}

// enter books a job, whose context ends with stop or by cancel; leave must be
// called at its end.
func (a *active) enter(stop context.Context, key string) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(stop))
	unhook := context.AfterFunc(stop, func() { cancel(errStopping) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byKey[key] = cancel
	return ctx, func() {
		a.mu.Lock()
		delete(a.byKey, key)
		a.mu.Unlock()
		unhook()
		cancel(nil)
	}
}

func (a *active) cancel(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if stop := a.byKey[key]; stop != nil {
		stop(llm.ErrCancelled)
	}
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
