package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// The client's own queue. It is emptied without waiting, so these are bounds
// against a burst and nothing more.
const (
	pendingMessages = 1 << 20
	pendingBytes    = 256 << 20
)

const joinWithin = 2 * time.Second

// membership is one subscription of the queue group.
type membership struct {
	*nats.Subscription
	ended chan struct{} // closed when its last message was taken
}

// join subscribes to requests in the queue group.
func (w *Worker) join(work context.Context) error {
	wanted := []string{subjects.Requests}
	if w.cfg.Tenants {
		wanted = append(wanted, subjects.TenantRequests)
	}
	for _, subject := range wanted {
		m, err := w.member(subject, func(msg *nats.Msg) { w.take(work, msg) })
		if err != nil {
			w.leave()
			return err
		}
		w.group = append(w.group, m)
	}
	// Joined means that the server knows. Where there is no connection just now, the
	// client subscribes again when it has one.
	ctx, cancel := context.WithTimeout(work, joinWithin)
	defer cancel()
	_ = w.cfg.Conn.FlushWithContext(ctx)
	w.state.set(Joined)
	w.begun.Do(func() { close(w.ready) })
	return nil
}

// member subscribes to one subject in the queue group.
func (w *Worker) member(subject string, handle nats.MsgHandler) (membership, error) {
	sub, err := w.cfg.Conn.QueueSubscribe(subject, subjects.Queue, handle)
	if err != nil {
		return membership{}, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	w.draining.Add(1)
	m := membership{sub, make(chan struct{})}
	sub.SetClosedHandler(func(string) {
		close(m.ended)
		w.draining.Done()
	})
	if err := sub.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		_ = m.Drain() // fails only when the subscription is gone already
		return m, fmt.Errorf("limiting %s: %w", subject, err)
	}
	return m, nil
}

// leave takes the worker out of the queue group. What the server has sent
// already is still delivered; Unsubscribe would lose it.
func (w *Worker) leave() {
	for _, m := range w.group {
		_ = m.Drain() // fails only when the subscription is gone already
	}
	w.group = nil
}

// steer leaves and rejoins the group as the slots fill and empty, until ctx
// ends.
func (w *Worker) steer(ctx, work context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.slots.changed:
		case <-timer.C:
		case <-w.cfg.LameDuck:
			if err := w.changeServer(work); err != nil {
				return err
			}
		}
		move, wait := w.slots.next(time.Now())
		switch move {
		case leave:
			w.leave()
			w.state.set(Away)
			w.stats.left.Add(1)
			w.log.Warn("full: left the queue group", "slots", w.cfg.Slots)
		case ask:
			if !w.roomElsewhere(ctx) {
				w.slots.pardon()
				wait = time.Nanosecond
			}
		case rejoin:
			if err := w.join(work); err != nil {
				return err
			}
			w.stats.rejoined.Add(1)
			w.log.Info("rejoined the queue group")
		}
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// State is a worker's place in the queue group.
type State string

const (
	Starting State = "starting"
	Joined   State = "joined"
	Away     State = "away"     // full: others get the requests
	Draining State = "draining" // shutting down
	Stopped  State = "stopped"
)

// state is a State that many goroutines may read.
type state struct {
	mu sync.Mutex
	s  State
}

func (s *state) set(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s = to
}

func (s *state) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.s == "" {
		return Starting
	}
	return s.s
}

// State returns the worker's place in the queue group.
func (w *Worker) State() State { return w.state.get() }
