package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Face shows features as agents on one connection.
type Face struct {
	cfg     Config
	inbox   string        // where the server reports that a caller is gone
	changed chan struct{} // one token after Announce

	mu       sync.Mutex
	features []string
	ending   bool
	prompts  int
	gone     map[string]context.CancelCauseFunc // prompts under way, by the token of their reports
	running  sync.WaitGroup
}

// New checks the configuration. Nothing is subscribed before Run.
func New(cfg Config) (*Face, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Face{cfg: cfg.withDefaults(), inbox: cfg.Conn.NewInbox(), changed: make(chan struct{}, 1), gone: make(map[string]context.CancelCauseFunc)}, nil
}

// Announce says which features there are from now on. It may be called at any
// time and by any goroutine, and does not wait.
func (f *Face) Announce(features []string) {
	f.mu.Lock()
	f.features = slices.Clone(features)
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Run shows what was announced until ctx ends. Then it takes no more prompts,
// gives what is in flight Config.Grace to end and breaks off the rest. It
// returns nil after an orderly end. It must be called once.
func (f *Face) Run(ctx context.Context) error {
	work, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	reports, err := f.cfg.Conn.Subscribe(f.inbox+".*", f.onReport)
	if err != nil {
		return fmt.Errorf("subscribing to reports: %w", err)
	}
	defer func() { _ = reports.Unsubscribe() }() // fails only with the connection
	shown := make(map[string]*agent)
	err = f.follow(ctx, work, shown)
	for _, a := range shown {
		err = errors.Join(err, a.stop())
	}
	return errors.Join(err, f.shutdown(interrupt))
}

// follow keeps shown at what was announced and gives signs of life.
func (f *Face) follow(ctx, work context.Context, shown map[string]*agent) error {
	beat := time.NewTicker(f.cfg.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-f.changed:
			if err := f.reconcile(work, shown); err != nil {
				return err
			}
		case <-beat.C:
			for _, a := range shown {
				a.beat()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *Face) reconcile(work context.Context, shown map[string]*agent) error {
	f.mu.Lock()
	features := f.features
	f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if slices.Contains(features, name) {
			continue
		}
		if err := shown[name].stop(); err != nil {
			return err
		}
		delete(shown, name)
	}
	for _, name := range features {
		if shown[name] != nil {
			continue
		}
		a, err := f.show(work, name)
		if err != nil {
			return err
		}
		shown[name] = a
		a.beat()
	}
	return nil
}

// begin counts a prompt in and returns its context, or says why it must not
// begin. done counts it out.
func (f *Face) begin(work context.Context, token string) (ctx context.Context, done func(), refused *llm.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ending:
		return nil, nil, llm.Errorf(llm.CodeUnavailable, "the worker is shutting down; ask again")
	case f.prompts >= f.cfg.Prompts:
		busy := llm.Errorf(llm.CodeBusy, "%d prompts are under way", f.prompts)
		busy.RetryAfterMS = 1000
		return nil, nil, busy
	}
	ctx, cancel := context.WithCancelCause(work)
	f.prompts++
	f.gone[token] = cancel
	f.running.Add(1)
	return ctx, func() {
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.prompts--
		delete(f.gone, token)
		f.running.Done()
	}, nil
}

// onReport hears that an ack met nobody.
func (f *Face) onReport(msg *nats.Msg) {
	if msg.Header.Get(subjects.HeaderStatus) != subjects.StatusNoResponders {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.gone[msg.Subject[len(f.inbox)+1:]]; cancel != nil {
		cancel(llm.Errorf(llm.CodeCancelled, "the caller is gone"))
	}
}

// lastWord bounds the steps that follow the grace period.
const lastWord = 5 * time.Second

// shutdown waits for what is in flight, within Grace plus a little.
func (f *Face) shutdown(interrupt context.CancelCauseFunc) error {
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	done := make(chan struct{})
	go func() {
		f.running.Wait()
		close(done)
	}()
	if !within(f.cfg.Grace, done) {
		interrupt(llm.Errorf(llm.CodeInterrupted, "the worker is shutting down"))
		if !within(lastWord, done) {
			return errors.New("agents: prompts did not end")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWord)
	defer cancel()
	return f.cfg.Conn.FlushWithContext(ctx)
}

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
