package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Worker answers requests from one NATS connection.
type Worker struct {
	cfg      Config
	log      *slog.Logger
	slots    *slots
	active   *active
	presence presence
	stats    counters
	state    state
	ready    chan struct{}
	begun    sync.Once

	badReplies, noReplies seldom
	readers               readers

	group     []membership   // Run's goroutine only
	resumes   []membership   // the same, of readers
	draining  sync.WaitGroup // subscriptions that still deliver
	running   sync.WaitGroup // requests
	crew      *crew
	envelopes sync.Pool // of *envelope, for answers
}

// New checks the configuration. Nothing is subscribed before Run.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Worker{
		cfg: cfg, log: cfg.Log, active: newActive(), crew: newCrew(), envelopes: sync.Pool{New: func() any { return newEnvelope() }}, ready: make(chan struct{}),
		slots:    newSlots(cfg.Slots, newShares(cfg.Tenants || cfg.TenantHeader), cfg.FullFor, cfg.CalmFor),
		presence: presence{inbox: cfg.Conn.NewInbox()},
	}, nil
}

// Run answers requests until ctx ends. Then it takes no more, gives what is in
// flight Config.Grace to end, stops the rest with code interrupted, and flushes.
// It returns nil after an orderly end. It must be called once.
func (w *Worker) Run(ctx context.Context) error {
	work, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	defer w.state.set(Stopped)
	unlisten, err := w.listen()
	if err != nil {
		return err
	}
	defer unlisten()
	service, err := w.announce()
	if err != nil {
		return err
	}
	defer func() { _ = service.Stop() }() // fails only with the connection
	if err := w.serveReaders(work); err != nil {
		return err
	}
	if err := w.join(work); err != nil {
		w.leaveReaders()
		return err
	}
	err = w.steer(ctx, work)
	return errors.Join(err, w.shutdown(interrupt))
}

// Ready is closed when the worker has joined the queue group for the first time
// and the server knows it: from then on another worker may be stopped.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// listen subscribes to what can stop requests.
func (w *Worker) listen() (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // fails only with the connection
		}
	}
	wanted := map[string]nats.MsgHandler{
		subjects.Cancels:          w.onCancel,
		w.presence.inbox + ".*.*": w.onPresence,
	}
	if w.cfg.Tenants {
		delete(wanted, subjects.Cancels)
		wanted[subjects.TenantCancels] = w.onCancel
	}
	for subject, handle := range wanted {
		sub, err := w.cfg.Conn.Subscribe(subject, handle)
		if err != nil {
			stop()
			return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

// shutdown ends what Run began, within Config.Grace plus a little.
func (w *Worker) shutdown(interrupt context.CancelCauseFunc) error {
	w.state.set(Draining)
	w.leave()
	w.leaveReaders()
	done := make(chan struct{})
	go func() {
		w.draining.Wait()
		w.running.Wait()
		close(done)
	}()
	var err error
	if !within(w.cfg.Grace, done) {
		interrupt(llm.Errorf(llm.CodeInterrupted, "the worker is shutting down"))
		if !within(lastWord, done) {
			used, _ := w.slots.load()
			err = fmt.Errorf("%w: %d left", ErrStuck, used)
		}
	}
	w.crew.end()
	if err == nil { // nobody is left at work
		w.crew.members.Wait()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	if flushErr := w.cfg.Conn.FlushWithContext(ctx); flushErr != nil {
		err = errors.Join(err, fmt.Errorf("flushing the last answers: %w", flushErr))
	}
	return err
}

// lastWord bounds the steps that follow the grace period.
const lastWord = 5 * time.Second

func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
