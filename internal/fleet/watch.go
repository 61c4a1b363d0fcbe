package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
)

const (
	defaultInterval = 2 * time.Second
	eventBuffer     = 8192                  // messages that may wait to be counted
	replyBuffer     = 1024                  // likewise, of workers' answers
	askAgain        = 50 * time.Millisecond // after a change, so that workers have seen it, too
	jetstreamWait   = 2 * time.Second       // for an answer of JetStream
	bindPause       = time.Second           // between two looks for the buckets
	denialPause     = 30 * time.Second      // between two tries to hear what is not permitted
)

// Config of a Watch.
type Config struct {
	Conn     *nats.Conn    // with nats.PermissionErrOnSubscribe, so that a Watch learns what it may not hear
	Interval time.Duration // between two questions to workers and streams; 0 means 2 s
	OnChange func()        // called when a breaker, a switch or the connection changes; must not block; may be nil
}

// Watch follows the fleet. It is safe for concurrent use.
type Watch struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	interval time.Duration
	onChange func()
	kick     chan struct{} // holds one wish to ask the workers at once

	mu       sync.Mutex
	breakers *kv.Mirror // nil until the buckets are found, as is flags
	flags    *kv.Mirror
	workers  map[string]*worker
	features []Feature         // as last known
	first    map[string]Target // of each feature, by its name
	traffic  *traffic
	cost     spending
	totals   *Cost // nil while they cannot be read
	notable  notable
	jobs     jobCounts
	events   *nats.Subscription // nil while there is none
	denied   bool               // this connection may not hear events
	asked    map[Part]bool
	ready    chan struct{}
}

// New makes a Watch, which is empty until Run.
func New(c Config) (*Watch, error) {
	if c.Conn == nil || c.Interval < 0 {
		return nil, errors.New("fleet: Conn must be set, and Interval not negative")
	}
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, err
	}
	w := &Watch{conn: c.Conn, js: js, interval: c.Interval, onChange: c.OnChange, kick: make(chan struct{}, 1), workers: map[string]*worker{}, first: map[string]Target{},
		asked: map[Part]bool{}, ready: make(chan struct{})}
	if w.interval == 0 {
		w.interval = defaultInterval
	}
	if w.onChange == nil {
		w.onChange = func() {}
	}
	w.begin(time.Now())
	return w, nil
}

func (w *Watch) begin(now time.Time) {
	w.traffic = newTraffic(now, kept)
	w.traffic.features = map[string]*traffic{}
	w.cost.add(0, now)
}

// Ready is closed once every part has been asked for and has answered or
// failed. Until then a View lacks what is still on its way.
func (w *Watch) Ready() <-chan struct{} { return w.ready }

func (w *Watch) had(p Part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked[p] {
		return
	}
	w.asked[p] = true
	if len(w.asked) == 3 { // workers, breakers (with switches), jobs
		close(w.ready)
	}
}

// Run follows the fleet until ctx ends, which is no error, or the connection is
// closed for good. It may be called once.
func (w *Watch) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.mu.Lock()
	w.begin(time.Now())
	w.mu.Unlock()
	var parts sync.WaitGroup
	defer parts.Wait()
	for _, part := range []func(context.Context) error{w.hear, w.ask, w.follow, w.count, w.connection} {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				stop(err)
			}
		})
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("watch the fleet: %w", err)
	}
	return nil
}

// connection tells of its loss and return, and ends all when it is over.
func (w *Watch) connection(ctx context.Context) error {
	status := w.conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer w.conn.RemoveStatusListener(status)
	for !w.conn.IsClosed() {
		select {
		case <-status:
			w.changed()
		case <-ctx.Done():
			return nil
		}
	}
	return nats.ErrConnectionClosed
}

// changed tells who watches, and has the workers asked what they make of it.
func (w *Watch) changed() {
	select {
	case w.kick <- struct{}{}:
	default: // somebody wished it already
	}
	w.onChange()
}

// follow mirrors the buckets, once they are there.
func (w *Watch) follow(ctx context.Context) error {
	defer w.had(PartBreakers)
	b := w.bind(ctx)
	if b == nil {
		return nil
	}
	config := kv.MirrorConfig{OnChange: func([]kv.Change) { w.changed() }}
	breakers, err := kv.NewMirror(b.Breakers, config)
	if err != nil {
		return err
	}
	flags, err := kv.NewMirror(b.Flags, config)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.breakers, w.flags = breakers, flags
	w.mu.Unlock()
	errs := make([]error, 2)
	var parts sync.WaitGroup
	for i, m := range []*kv.Mirror{breakers, flags} {
		parts.Go(func() { errs[i] = m.Run(ctx) })
	}
	parts.Go(func() { w.mirrored(ctx) })
	parts.Go(func() { w.spend(ctx, b.Usage) })
	parts.Wait()
	return errors.Join(errs...)
}

// mirrored waits for the first snapshots.
func (w *Watch) mirrored(ctx context.Context) {
	for _, m := range []*kv.Mirror{w.breakers, w.flags} {
		select {
		case <-m.Ready():
		case <-ctx.Done():
		}
	}
	w.had(PartBreakers)
}

// bind looks for the buckets until they are there; nil at the end of ctx.
func (w *Watch) bind(ctx context.Context) *kv.Buckets {
	for {
		bounded, cancel := context.WithTimeout(ctx, jetstreamWait)
		b, err := kv.Bind(bounded, w.js)
		cancel()
		if err == nil {
			return b
		}
		w.had(PartBreakers)
		select {
		case <-time.After(bindPause):
		case <-ctx.Done():
			return nil
		}
	}
}
