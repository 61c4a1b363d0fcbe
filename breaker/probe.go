package breaker

import (
	"context"
	"time"
)

// claim goes for the only right to probe: first the lease, then the half_open
// record by compare-and-swap. A worker that was late to learn of another's
// probe may win the lease after it, and fails at the second step.
func (b *Breaker) claim(ctx context.Context, epoch uint64) (Permit, error) {
	p := &probe{deadline: time.Now().Add(b.limits().ProbeTimeout)}
	if s := b.group.store; s != nil && s.reachable() {
		lease, err := s.lease(ctx, b.key, b.limits().lease())
		if err != nil {
			v, _ := b.apply(lost{epoch})
			return Permit{}, b.refusal(v, time.Now())
		}
		p.lease = lease
	}
	v, effect := b.apply(won{epoch})
	if effect == admit {
		if p.lease == 0 || b.agreed(ctx, v) && time.Now().Before(p.deadline) {
			return Permit{b: b, epoch: v.epoch, probe: p}, nil
		}
		b.apply(probed{epoch: v.epoch, kind: Neutral}) // no effect if another view came between
	}
	b.giveBack(p.lease)
	if v = *b.view.Load(); v.free() {
		return Permit{b: b, epoch: v.epoch}, nil
	}
	return Permit{}, b.refusal(v, time.Now())
}

// agreed waits until the bucket has taken the half_open view, and reports
// whether it has and nothing else has come between.
func (b *Breaker) agreed(ctx context.Context, v view) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for {
		b.mu.Lock()
		now := b.view.Load()
		if now.epoch != v.epoch || !now.pending {
			b.mu.Unlock()
			return now.epoch == v.epoch
		}
		if b.moved == nil {
			b.moved = make(chan struct{})
		}
		moved := b.moved
		b.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// giveBack has Run delete the lease once what led to it is shared.
func (b *Breaker) giveBack(lease uint64) {
	if lease == 0 {
		return
	}
	b.mu.Lock()
	b.leases = append(b.leases, lease)
	b.mu.Unlock()
	b.group.kick()
}

func (b *Breaker) limits() Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settings
}
