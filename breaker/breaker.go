package breaker

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Breaker is the handle of one key. It is safe for use by many goroutines.
type Breaker struct {
	key   string
	group *Group
	view  atomic.Pointer[view] // replaced under mu, read by anyone

	mu       sync.Mutex // never held over I/O
	settings Settings
	told     Change        // the last that was reported
	moved    chan struct{} // closed at the next event, if somebody waits for one
	due      time.Time     // when the pending view is to be shared
	sharing  bool          // a goroutine is at it
	leases   []uint64      // to be given back once the view is shared
}

// Key is the breaker's key in the llm_breakers bucket.
func (b *Breaker) Key() string { return b.key }

// Acquire admits a call or refuses it with an *OpenError. It reads memory only,
// except for the one caller in the process that goes for a probe: that one
// waits for KV, at most 2 s.
func (b *Breaker) Acquire(ctx context.Context) (Permit, error) {
	if v := b.view.Load(); v.free() {
		return Permit{b: b, epoch: v.epoch}, nil
	}
	return b.ask(ctx)
}

// Ready reports whether Acquire would likely admit a call. It takes nothing.
func (b *Breaker) Ready() bool {
	v := b.view.Load()
	return v.free() || v.ready(time.Now())
}

// Check says what Acquire would likely do now: nil, or its *OpenError. It takes
// nothing. probe is true where the call would be the probe of an open breaker,
// which one caller of the fleet gets.
func (b *Breaker) Check() (probe bool, err error) {
	v, now := b.view.Load(), time.Now()
	if v.free() || v.ready(now) {
		return v.state == Open || v.state == HalfOpen, nil
	}
	return false, b.refusal(*v, now)
}

// Cool leaves the provider alone for d, up to 24 h, over the whole fleet. It is
// for a provider that says how long, with a 429 or an empty account: no failure
// is counted and the end admits all callers without a probe. An open breaker
// has its own wait and ignores it.
func (b *Breaker) Cool(_ context.Context, d time.Duration, why string) {
	b.apply(cooled{d, clip(why)})
}

func (b *Breaker) ask(ctx context.Context) (Permit, error) {
	if v, now := b.view.Load(), time.Now(); !v.ready(now) {
		return Permit{}, b.refusal(*v, now) // the common case while open: no lock
	}
	v, effect := b.apply(asked{})
	switch effect {
	case admit:
		return Permit{b: b, epoch: v.epoch}, nil
	case claim:
		return b.claim(ctx, v.epoch)
	}
	return Permit{}, b.refusal(v, time.Now())
}

func (b *Breaker) refusal(v view, now time.Time) error {
	why := v.why
	if v.state == Closed {
		why = "ramp"
	}
	return &OpenError{Key: b.key, State: v.state, Why: why, RetryAfter: v.retryAfter(now)}
}

// failed counts a failure here and tells the other workers.
func (b *Breaker) failed(epoch uint64, why string) {
	if v, effect := b.apply(failed{epoch, why}); effect == announce {
		b.group.announce(b.key, v.generation, why)
	}
}

// probeDone records the result of a probe. Its lease is given back after the
// result is shared, so that nobody probes in between.
func (b *Breaker) probeDone(p Permit, r Result) {
	if p.probe.done.Swap(true) {
		return
	}
	b.apply(probed{p.epoch, r.Kind, clip(r.Why), time.Duration(p.probe.cool.Load())})
	b.giveBack(p.probe.lease)
}

// apply lets the machine decide and notes what the shell owes for it.
func (b *Breaker) apply(e event) (view, effect) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, now := b.view.Load(), time.Now()
	m := machine{Settings: b.settings, worker: b.group.worker, luck: rand.Float64()}
	v, effect := m.next(*old, e, now)
	if b.group.store == nil {
		v.pending = false
	}
	if v.pending && (!old.pending || old.generation != v.generation) {
		b.due = now
		if _, ok := e.(heard); ok { // whoever announced the failure writes first
			b.due = now.Add(50*time.Millisecond + time.Duration(m.luck*float64(100*time.Millisecond)))
		}
		b.group.kick()
	}
	b.view.Store(&v)
	if !v.pending {
		b.tell(v)
	}
	if b.moved != nil {
		close(b.moved)
		b.moved = nil
	}
	return v, effect
}

// tell reports a transition once it is settled: shared, learned, or decided
// without KV. Called with mu held.
func (b *Breaker) tell(v view) {
	if b.told.To == v.state && b.told.Generation == v.generation {
		return
	}
	b.told = Change{
		Key: b.key, From: b.told.To, To: v.state, Why: v.why, Generation: v.generation,
		CoolDown: v.coolDown, By: v.by, Mine: v.by == b.group.worker,
	}
	b.group.report(b.told)
}

// configure replaces the settings, which every later event sees.
func (b *Breaker) configure(s Settings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settings = s
}
