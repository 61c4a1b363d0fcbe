package limits

import (
	"context"
	"time"
)

const (
	askPatience = 2 * time.Second // for JetStream, after which this worker decides alone
	mostRounds  = 8               // of asking and recalling, before a limit counts as reached
)

// ask has somebody do what is due, and tells when that is done; nil if nobody
// asks any more since Run has ended. The pool is locked.
func (p *pool) ask() <-chan struct{} {
	if p.asking != nil {
		return p.asking
	}
	done := make(chan struct{})
	if !p.l.begin(func() {
		p.fill(context.Background()) // every step is bounded
		p.mu.Lock()
		p.asking = nil
		p.mu.Unlock()
		close(done)
	}) {
		return nil
	}
	p.asking = done
	return done
}

// fill leases what is waited for. Before a limit counts as reached, everybody
// who holds some of it unused is asked to give it back.
func (p *pool) fill(ctx context.Context) {
	for range mostRounds {
		if p.trade(ctx, p.due) != nil {
			return
		}
		if p.served() {
			return
		}
		if p.l.fleet.recall(ctx, p.key) {
			continue
		}
		if p.trade(ctx, p.look) != nil {
			return
		}
		if p.full() {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.barren, p.stale = p.l.clock.now(), false
}

// due is what is to be traded now. The pool is locked.
func (p *pool) due() order {
	o := order{owed: p.owed}
	switch short := p.waiting - p.rest; {
	case short > 0:
		o.want = max(0, min(max(short, p.block()), p.limit-p.total-p.owed))
	case p.waiting == 0 && p.l.clock.now() < p.wanted:
		o.want = -p.rest
	}
	return o
}

// look asks for nothing, to learn what the fleet has leased. The pool is locked.
func (p *pool) look() order { return order{owed: p.owed, look: true} }

// block is how much is leased at once: less and less as the limit comes near.
func (p *pool) block() int64 { return (p.limit - p.total) / blocks }

// served reports whether nobody waits for more than there is.
func (p *pool) served() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting <= p.rest
}

// full reports whether the fleet has leased all there is, as far as is known.
func (p *pool) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total+p.owed >= p.limit
}

// trade carries out what plan, called with the pool locked, finds due.
func (p *pool) trade(ctx context.Context, plan func() order) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	select {
	case p.line <- struct{}{}:
		defer func() { <-p.line }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := p.l.reach(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.roll(p.l.clock.now())
	o := plan()
	o.window, o.limit = p.window, p.limit
	if o.want < 0 { // from now on nobody gets it here
		p.rest += o.want
		p.low = min(p.low, p.rest)
	}
	o.holding = p.out + p.rest
	p.mu.Unlock()
	if o.want == 0 && o.owed == 0 && !o.look {
		return nil
	}
	r, err := p.src.trade(ctx, p, o)
	if err != nil {
		p.l.fell(err)
		return err
	}
	p.apply(o, r)
	return nil
}

// apply books a trade. What was owed may have come back in the meantime, and
// then is free.
func (p *pool) apply(o order, r receipt) {
	p.heard(o.window, r.total, r.seq)
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.window != p.window {
		return
	}
	still := min(o.owed, p.owed)
	p.owed -= still
	if p.Kind == Concurrent {
		p.out += still
	}
	p.rest += o.owed - still
	if o.want > 0 {
		p.rest += r.granted
	}
}
