package http1

import (
	"slices"
	"sync"
	"time"
)

// pool keeps connections that no call uses, for a while.
type pool struct {
	timeout time.Duration
	max     int // of one host

	mu     sync.Mutex
	idle   map[host][]*conn // the last put is the first taken
	timer  *time.Timer      // nil while there is nothing to clear away
	closed bool
}

// take gives a connection that was silent a moment ago, if there is one.
func (p *pool) take(to host) (*conn, bool) {
	for {
		c := p.pop(to)
		if c == nil || c.quiet() {
			return c, c != nil
		}
		c.cut()
	}
}

func (p *pool) pop(to host) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.idle[to]
	if len(kept) == 0 {
		return nil
	}
	c := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	p.idle[to] = kept[:len(kept)-1]
	return c
}

// put keeps a connection, or closes it where there are enough.
func (p *pool) put(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle[c.host]) >= p.max {
		c.cut()
		return
	}
	p.idle[c.host] = append(p.idle[c.host], c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.timeout, p.clear)
	}
}

// clear closes what has been idle for too long, and comes back in half that time.
func (p *pool) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	for to, kept := range p.idle {
		old := 0
		for old < len(kept) && time.Since(kept[old].since) >= p.timeout {
			kept[old].cut()
			old++
		}
		if p.idle[to] = slices.Delete(kept, 0, old); len(p.idle[to]) == 0 {
			delete(p.idle, to)
		}
	}
	if len(p.idle) > 0 {
		p.timer = time.AfterFunc(p.timeout/2, p.clear)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, kept := range p.idle {
		for _, c := range kept {
			c.cut()
		}
	}
	clear(p.idle)
	if p.timer != nil {
		p.timer.Stop()
	}
}
