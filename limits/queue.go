package limits

import "slices"

// waiter waits until others have been asked. What comes in is handed to those
// who wait at once, so that nobody recalls it from under them.
type waiter struct {
	n    int64
	done chan struct{} // closed when it has got its part, or should look again
	got  part          // of no pool: look again
}

// wait queues. The pool is locked.
func (p *pool) wait(n int64) *waiter {
	w := &waiter{n: n, done: make(chan struct{})}
	p.queue = append(p.queue, w)
	return w
}

// serve hands out what there is to those who wait, the first first; one who
// needs more than there is holds up nobody. The pool is locked.
func (p *pool) serve() {
	p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool {
		if w.n > p.rest {
			return false
		}
		w.got = p.hand(w.n)
		close(w.done)
		return true
	})
}

// short is what those who wait lack. The pool is locked.
func (p *pool) short() int64 {
	sum := -p.rest
	for _, w := range p.queue {
		sum += w.n
	}
	return sum
}

// dismiss ends the asking; whoever still waits looks again.
func (p *pool) dismiss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	for _, w := range p.queue {
		close(w.done)
	}
	p.queue = nil
}

// leave ends the wait of one who has no time left.
func (p *pool) leave(w *waiter) {
	p.mu.Lock()
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	got := w.got
	p.mu.Unlock()
	if got.pool != nil {
		p.put(p.l.clock.now(), got.window, got.n)
	}
}
