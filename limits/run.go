package limits

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

const (
	beatEvery    = time.Second
	measureEvery = 10              // beats between two readings of the server's clock
	idleFor      = 30              // beats after which a tenant is forgotten
	bookBeats    = 2               // beats to book in what was admitted without JetStream
	givers       = 16              // pools that give back at once
	lastWord     = 2 * time.Second // to give back what is left at the end
)

// Run listens to the fleet and, every second, says that this worker lives, gives
// back what is not used and looks whether JetStream has come back, until ctx
// ends, which is no error. Then it gives everything back. Requests must have ended
// by then. It may be called once.
func (l *Limiter) Run(ctx context.Context) error {
	unlisten, err := l.listen()
	if err != nil {
		return err
	}
	defer unlisten()
	status := l.conn.StatusChanged(nats.CONNECTED)
	defer l.conn.RemoveStatusListener(status)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			l.end(context.WithoutCancel(ctx))
			return nil
		case <-status:
			l.fleet.listening()
		case <-beat.C:
			l.beat(ctx)
		}
	}
}

// beat does what is due each second. What may have to wait for JetStream is left
// to a goroutine, so that a worker with much to give back is not taken for dead.
func (l *Limiter) beat(ctx context.Context) {
	if l.policy.Load().Empty() && len(l.all()) == 0 {
		return
	}
	_ = l.fleet.say() // heard again a second later
	l.fleet.forget()
	n := l.tick.Add(1)
	if !l.sweeping.CompareAndSwap(false, true) {
		return
	}
	l.begin(func() {
		defer l.sweeping.Store(false)
		l.sweep(ctx, n)
	})
}

func (l *Limiter) listen() (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // fails only with the connection
		}
	}
	for subject, handle := range map[string]nats.MsgHandler{
		subjects.LimitRecall: l.onRecall, subjects.LimitAlive: l.fleet.onAlive,
		subjects.LimitChanges: l.onCount, subjects.SlotChanges: l.onSlots,
	} {
		sub, err := l.conn.Subscribe(subject, handle)
		if err != nil {
			stop()
			return nil, fmt.Errorf("limits: subscribing to %s: %w", subject, err)
		}
		subs = append(subs, sub)
	}
	l.fleet.listening()
	return stop, nil
}

// sweep gives back what was not touched since the last one, books what is owed
// and forgets tenants that have not asked for a while.
func (l *Limiter) sweep(ctx context.Context, n int64) {
	settled := !l.down()
	if l.lost.Load() && !l.probe(ctx) {
		return
	}
	if settled && n%measureEvery == 1 {
		if err := l.measure(ctx); err != nil {
			l.fell(err)
		}
	}
	l.trade(ctx, l.all(), (*pool).idle)
	if !settled {
		l.recover(n)
	}
	if n%measureEvery == 0 {
		l.forget(n)
	}
}

// trade has every pool with something due carry it out. due is called with the
// pool locked.
func (l *Limiter) trade(ctx context.Context, pools []*pool, due func(*pool) order) {
	var group sync.WaitGroup
	defer group.Wait()
	free := make(chan struct{}, givers)
	for _, p := range pools {
		o := p.plan(due)
		if o.want == 0 && o.owed == 0 || l.lost.Load() {
			continue
		}
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			_ = p.trade(ctx, func() order { // if it fails, the next sweep books what is owed
				return order{want: max(o.want, -p.rest), owed: p.owed}
			})
		})
	}
}

func (p *pool) plan(due func(*pool) order) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roll(p.l.clock.now())
	return due(p)
}

// idle is what nobody has touched since it was last asked.
func (p *pool) idle() order {
	o := order{want: -p.low, owed: p.owed}
	p.low = p.rest
	return o
}

// all is also what is left of it.
func (p *pool) all() order { return order{want: -p.rest, owed: p.owed} }

func (l *Limiter) all() []*pool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := make([]*pool, 0, len(l.pools))
	for _, p := range l.pools {
		list = append(list, p)
	}
	return list
}

// forget drops tenants that have not asked for a while and hold nothing.
func (l *Limiter) forget(now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, t := range l.tenants {
		if t.open.Load() > 0 || now-t.used.Load() < idleFor || !t.free() {
			continue
		}
		delete(l.tenants, name)
		for key := range t.pools {
			delete(l.pools, key)
		}
	}
}

// free reports whether no pool holds anything.
func (t *tenant) free() bool {
	for _, p := range t.pools {
		p.mu.Lock()
		held := p.rest != 0 || p.owed != 0 || p.out != 0 || len(p.queue) != 0 || p.asking
		p.mu.Unlock()
		if held {
			return false
		}
	}
	return true
}

// probe reports whether JetStream has come back.
func (l *Limiter) probe(ctx context.Context) bool {
	if !l.conn.IsConnected() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if l.measure(ctx) != nil || l.counters.probe(ctx) != nil {
		return false
	}
	l.lost.Store(false)
	return true
}

// recover ends the time of deciding alone some beats after JetStream has come
// back. Until then the others book what they admitted alone, each in its own
// time; else the first that is back would lease it all.
func (l *Limiter) recover(n int64) {
	switch {
	case l.lost.Load(): // again
		l.returned = 0
	case l.returned == 0:
		l.returned = n
	case n-l.returned >= bookBeats:
		l.returned = 0
		l.away.Store(false)
		l.log.Info("limits: JetStream is back")
	}
}

// end gives everything back. From then on this worker decides alone.
func (l *Limiter) end(ctx context.Context) {
	l.ending.Lock()
	l.closed = true
	l.ending.Unlock()
	l.working.Wait()
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	l.trade(ctx, l.all(), (*pool).all)
	l.away.Store(true)
}
