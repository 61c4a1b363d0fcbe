package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/subjects"
)

// hear counts events as they come. Whoever may not hear them tries again later.
func (w *Watch) hear(ctx context.Context) error {
	for {
		sub, err := w.conn.SubscribeSync(subjects.Events)
		if err == nil {
			err = sub.SetPendingLimits(eventBuffer, -1)
		}
		if err != nil {
			return err
		}
		w.hearing(sub, false)
		err = w.listen(ctx, sub)
		_ = sub.Unsubscribe() // fails only with the connection
		if !errors.Is(err, nats.ErrPermissionViolation) {
			return err
		}
		w.hearing(nil, true)
		select {
		case <-time.After(denialPause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *Watch) hearing(sub *nats.Subscription, denied bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.denied = sub, denied
}

// listen takes what a subscription gets, until it ends.
func (w *Watch) listen(ctx context.Context, sub *nats.Subscription) error {
	begun := subjects.Event(chain.EventRequestStarted)
	for {
		msg, err := NextEvent(ctx, sub)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrSlowConsumer): // counted as missed
			continue
		case err != nil:
			return err
		case msg.Subject == begun: // every request has one, and it is not counted
			continue
		}
		if e, err := DecodeEvent(msg.Data); err == nil {
			w.take(e, time.Now())
		}
	}
}

func (w *Watch) take(e *Event, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, known := w.first[e.Feature]
	w.traffic.count(e, known && e.Provider != "" && first != Target{Provider: e.Provider, Model: e.Model}, now)
	w.notable.take(e, now)
	w.cost.add(e.CostUSD, now)
}
