package limits

import (
	"context"
	"time"
)

const (
	askPatience = 2 * time.Second // for JetStream, after which this worker decides alone
	mostRounds  = 8               // of asking and recalling, before a limit counts as reached
)

// ask has somebody do what is due, unless that is being done. It is false if
// nobody asks any more since Run has ended. The pool is locked.
func (p *pool) ask() bool {
	if !p.asking {
		p.asking = p.l.begin(func() {
			defer p.dismiss()
			p.fill(context.Background()) // every step is bounded
		})
	}
	return p.asking
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
	switch short := p.short(); {
	case len(p.queue) > 0:
		o.want = max(0, min(max(short, p.block()), p.limit-p.total-p.owed))
	case p.l.clock.now() < p.wanted:
		o.want = -p.rest
	}
	return o
}

// look asks for nothing, to learn what the fleet has leased. The pool is locked.
func (p *pool) look() order { return order{owed: p.owed, look: true} }

// block is how much is leased at once: less and less as the limit comes near.
func (p *pool) block() int64 { return (p.limit - p.total) / blocks }

// served reports whether nobody waits.
func (p *pool) served() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0
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
	p.serve()
}
