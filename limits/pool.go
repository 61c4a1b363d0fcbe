package limits

import (
	"context"
	"sync"
	"time"
)

// pool is what this worker may hand out of one limit in the present window
// without asking anybody, and what it knows of the rest.
type pool struct {
	scoped
	frame
	key string // as others call it
	src source
	l   *Limiter

	line chan struct{} // held by the one goroutine that trades with the source; takers never wait for it

	mu     sync.Mutex
	limit  int64
	window int64 // all below belongs to it
	rest   int64 // leased and free
	low    int64 // the least rest since the last sweep
	out    int64 // leased and handed out; kept of Concurrent only
	owed   int64 // handed out beyond what was leased, to be booked
	total  int64 // leased by the fleet, as last heard
	seq    uint64
	queue  []*waiter
	asking bool  // for those who wait
	barren int64 // when everybody had nothing to give; see clock
	stale  bool  // somebody has leased more since
	wanted int64 // until then somebody else is short
}

// source is where a pool's allowance comes from, shared by all workers.
type source interface {
	// trade books what is owed, and gives back or asks for some more. Owed is
	// booked whatever the limit is; granted never takes the total beyond it. An
	// error means that nothing is known of the outcome.
	trade(context.Context, *pool, order) (receipt, error)
}

type order struct {
	window  int64
	limit   int64
	want    int64 // below 0: to give back
	owed    int64
	look    bool  // trade although nothing is wanted or owed
	holding int64 // leased, used or not, without want and owed
}

type receipt struct {
	granted int64
	total   int64
	seq     uint64 // of total
}

// part is what one request took from a pool.
type part struct {
	pool     *pool
	window   int64
	n        int64
	degraded bool
}

const (
	barrenFor = int64(time.Second)           // how long a limit that is reached is not asked about again
	staleFor  = int64(10 * time.Millisecond) // the same when somebody else has leased since what had come back
	wantedFor = int64(time.Second)           // how long what comes back is passed on at once, after a recall
	blocks    = 64                           // one lease is this part of what is left
)

// take takes n now, or all of the limit if n is more than that, or returns an
// *Exceeded or the cause of ctx's end, and has taken nothing.
func (p *pool) take(ctx context.Context, now, n int64) (part, error) {
	for ; ; now = p.l.clock.now() {
		got, w, err := p.try(now, n)
		if w == nil {
			return got, err
		}
		select {
		case <-w.done:
		case <-ctx.Done():
		}
		switch {
		case ctx.Err() != nil:
			p.leave(w)
			return part{}, context.Cause(ctx)
		case w.got.pool != nil:
			return w.got, nil
		}
	}
}

// try takes n without waiting, or says why it is not to be had, or queues.
func (p *pool) try(now, n int64) (part, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roll(now)
	if n = min(n, p.limit); p.rest >= n {
		return p.hand(n), nil, nil
	}
	if !p.l.down() {
		if p.known(n, now) {
			return part{}, nil, p.exceeded(n, now)
		}
		if p.ask() {
			return part{}, p.wait(n), nil
		}
	}
	got, err := p.alone(n, now)
	return got, nil, err
}

// roll forgets the past when a new window has begun.
func (p *pool) roll(now int64) {
	if w := p.number(now); w != p.window && p.length > 0 {
		p.window, p.rest, p.low, p.owed, p.total, p.seq, p.barren, p.wanted = w, 0, 0, 0, 0, 0, 0, 0
	}
}

func (p *pool) hand(n int64) part {
	p.rest -= n
	p.low = min(p.low, p.rest)
	if p.Kind == Concurrent {
		p.out += n
	}
	return part{pool: p, window: p.window, n: n}
}

// alone decides without the others: what is leased, and an even share of what
// was not leased by anybody when last heard.
func (p *pool) alone(n, now int64) (part, error) {
	workers := p.l.fleet.size()
	share := (max(0, p.limit-p.total)+workers-1)/workers - p.owed
	if p.rest+max(0, share) < n {
		return part{}, p.exceeded(n, now)
	}
	leased := min(p.rest, n)
	got := p.hand(leased)
	p.owed += n - leased
	got.n, got.degraded = n, true
	return got, nil
}

// known reports whether it is certain enough that n is not to be had.
func (p *pool) known(n, now int64) bool {
	believed := barrenFor
	if p.stale {
		believed = staleFor
	}
	return now-p.barren < believed && p.rest+max(0, p.limit-p.total) < n
}

func (p *pool) exceeded(n, now int64) *Exceeded {
	e := &Exceeded{Limit: p.Limit, Feature: p.feature, RetryAfter: p.left(now), Degraded: p.l.down()}
	e.Amount = p.limit
	if p.Kind == Concurrent {
		e.RetryAfter = time.Second
	}
	if p.Kind == Tokens {
		e.Wanted = n
	}
	return e
}

// put gives back n of what was taken in a window.
func (p *pool) put(now, window, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roll(now)
	if window != p.window || n == 0 {
		return
	}
	early := min(p.owed, n)
	p.owed -= early
	p.rest += n - early
	if p.Kind == Concurrent {
		p.out -= n - early
	}
	p.serve()
	if p.rest > 0 && now < p.wanted {
		p.ask()
	}
}

// charge books n that was used without having been taken, whatever is left.
func (p *pool) charge(now, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roll(now)
	leased := min(p.rest, n)
	p.hand(leased)
	if p.owed += n - leased; p.owed > 0 {
		p.ask()
	}
}

// heard takes note of how much of the window the fleet has leased.
func (p *pool) heard(window, total int64, seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if window == p.window && seq > p.seq {
		p.stale = p.stale || total > p.total
		p.total, p.seq = total, seq
	}
}
