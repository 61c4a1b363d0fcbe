package breaker

import (
	"cmp"
	"slices"
	"time"
)

// machine decides; it has no clock and does no I/O. Everything that it knows
// comes in by the view, the event and now.
type machine struct {
	Settings
	worker string  // who makes the transitions
	luck   float64 // 0 to 1, drawn for each event: spreads the workers' waits
}

// event is something that happened to one breaker.
type event interface {
	on(m machine, v view, now time.Time) (view, effect)
}

// effect is what the shell owes for an event besides sharing a pending view.
type effect int

const (
	none     effect = iota
	admit           // the caller goes through
	refuse          // the caller is turned away
	claim           // the caller goes for the lease and reports won or lost
	announce        // tell the other workers of this failure
)

// next is the whole behaviour of a breaker.
func (m machine) next(v view, e event, now time.Time) (view, effect) { return e.on(m, v, now) }

// spread lengthens a wait by up to a tenth.
func (m machine) spread(d time.Duration) time.Duration {
	return d + time.Duration(m.luck*float64(d)/10)
}

// asked: a caller wants through and the breaker is not free.
type asked struct{}

func (asked) on(m machine, v view, now time.Time) (view, effect) {
	switch {
	case v.state == Closed:
		return m.onRamp(v, now)
	case !v.ready(now):
		return v, refuse
	case v.state == Cooling:
		v.state, v.why, v.begun = Closed, "", v.until
		v.pending = false // every worker sees it for itself
		return v, admit
	default:
		v.claimed = true
		return v, claim
	}
}

// onRamp admits an even share of the callers: 10 %, 25 %, 50 %, all.
func (m machine) onRamp(v view, now time.Time) (view, effect) {
	left := v.ramp.Sub(now)
	if left <= 0 {
		v.ramp, v.asked = time.Time{}, 0
		return v, admit
	}
	share := []uint64{50, 25, 10}[min(2, max(0, int(3*left/max(1, m.Ramp))))]
	v.asked++
	if v.asked*share/100 == (v.asked-1)*share/100 {
		return v, refuse
	}
	return v, admit
}

// failed: a call that was admitted in epoch failed here.
type failed struct {
	epoch uint64
	why   string
}

func (e failed) on(m machine, v view, now time.Time) (view, effect) {
	if e.epoch != v.epoch || !v.state.admits() {
		return v, none // admitted before it opened: known already
	}
	return m.count(v, e.why, now), announce
}

// heard: a call failed at another worker.
type heard struct{ why string }

func (e heard) on(m machine, v view, now time.Time) (view, effect) {
	if !v.state.admits() {
		return v, none
	}
	return m.count(v, e.why, now), none
}

func (m machine) count(v view, why string, now time.Time) view {
	window := append(v.window(now, m.Window), now)
	if len(window) < m.Threshold {
		v.failures = window
		return v
	}
	coolDown := m.CoolDown
	if v.coolDown > 0 && now.Sub(v.closed) < m.Window {
		coolDown = m.Settings.next(v.coolDown)
	}
	v = m.open(v, coolDown, coolDown, now)
	v.why, v.tally = why, len(window)
	return v
}

func (m machine) open(v view, coolDown, wait time.Duration, now time.Time) view {
	v = v.enter(Open, wait, now)
	v.until, v.coolDown, v.by = now.Add(m.spread(wait)), coolDown, m.worker
	return v
}

// cooled: the provider asks to be left alone for d.
type cooled struct {
	d   time.Duration
	why string
}

func (e cooled) on(m machine, v view, now time.Time) (view, effect) {
	d := min(e.d, longestWait)
	if !v.state.admits() || d <= 0 {
		return v, none // open: the probe will ask the provider itself
	}
	if v.state == Cooling && now.Add(d).Before(v.until.Add(time.Second)) {
		return v, none // many calls in flight are told the same
	}
	ramp := v.ramp
	v = v.enter(Cooling, d, now)
	v.until, v.ramp, v.why, v.by = now.Add(m.spread(d)), ramp, e.why, m.worker
	return v, none
}

// won: the caller that claimed in epoch holds the lease, or decides alone
// since KV is out of reach. The view's new epoch is the probe's.
type won struct{ epoch uint64 }

func (e won) on(m machine, v view, now time.Time) (view, effect) {
	if e.epoch != v.epoch || !v.claimed {
		return v, refuse // what it claimed under is history
	}
	v = v.enter(HalfOpen, m.lease(), now)
	v.by = m.worker
	return v, admit
}

// lost: another worker holds the lease, or it could not be asked for. The
// mirror will likely tell before the next try.
type lost struct{ epoch uint64 }

func (e lost) on(_ machine, v view, now time.Time) (view, effect) {
	if e.epoch == v.epoch && v.claimed {
		retry := 250 * time.Millisecond
		if v.state == HalfOpen { // its lease has run out: the server is about to notice
			retry = 100 * time.Millisecond
		}
		v.claimed, v.until = false, now.Add(retry)
	}
	return v, refuse
}

// probed: the probe of epoch has ended.
type probed struct {
	epoch uint64
	kind  Kind
	why   string
	cool  time.Duration // the provider asks to be left alone that long
}

func (e probed) on(m machine, v view, now time.Time) (view, effect) {
	if e.epoch != v.epoch || v.state != HalfOpen {
		return v, none // overtaken: somebody else holds the right, or an operator spoke
	}
	switch e.kind {
	case Success:
		v = v.enter(Closed, 0, now)
		v.closed, v.why, v.by, v.tally = now, "", m.worker, 0
		if m.Ramp > 0 {
			v.ramp = now.Add(m.Ramp)
		}
		return v, none
	case Failure:
		coolDown := m.Settings.next(v.coolDown)
		v = m.open(v, coolDown, coolDown, now)
		v.why, v.tally = e.why, 1
	default:
		soon := max(min(time.Second, v.coolDown), min(e.cool, longestWait))
		v = m.open(v, v.coolDown, soon, now)
	}
	return v, none
}

// reset: an operator deleted the key.
type reset struct{ revision uint64 }

func (e reset) on(_ machine, v view, now time.Time) (view, effect) {
	if e.revision <= v.revision {
		return v, none
	}
	return view{state: Closed, revision: e.revision, epoch: v.epoch + 1, begun: now}, none
}

// vanished: the bucket has no value and no word of a deletion. That is no
// shared opinion, so what is known here stays.
type vanished struct{}

func (vanished) on(_ machine, v view, _ time.Time) (view, effect) {
	v.revision = 0
	return v, none
}

// garbled: the value at revision is not a record. It is overwritten by the
// next transition and has no other effect.
type garbled struct{ revision uint64 }

func (e garbled) on(_ machine, v view, _ time.Time) (view, effect) {
	v.revision = max(v.revision, e.revision)
	return v, none
}

// shared: the bucket took this worker's view of that generation. If another
// word, such as a reset, has replaced that view here meanwhile, what the bucket
// now holds is still to be learned, as every other worker will.
type shared struct{ generation, revision uint64 }

func (e shared) on(_ machine, v view, _ time.Time) (view, effect) {
	if v.generation != e.generation && !v.pending {
		return v, none
	}
	v.revision = max(v.revision, e.revision)
	if v.generation == e.generation {
		v.pending = false
	}
	return v, none
}

// learned: the bucket holds record at revision, stored at the instant stored
// by the local clock.
type learned struct {
	record   Record
	revision uint64
	stored   time.Time
}

func (e learned) on(m machine, v view, now time.Time) (view, effect) {
	switch {
	case e.revision <= v.revision:
		return v, none
	case e.mine(m, v):
		return shared{e.record.Generation, e.revision}.on(m, v, now)
	case v.pending && e.yields(m, v):
		v.revision = e.revision
		v.generation = max(v.generation, e.record.Generation+1)
		return v, none
	}
	return e.adopt(m, v), none
}

// mine: it is this worker's own write, heard of before its reply.
func (e learned) mine(m machine, v view) bool {
	return e.record.By == m.worker && e.record.Generation == v.generation && e.record.State == v.state
}

// yields: this worker's pending view is the newer opinion all the same.
func (e learned) yields(m machine, v view) bool {
	own := e.record.By == m.worker && e.record.Generation < v.generation // an earlier write whose reply was lost
	return own || v.state == Open && (e.record.State == Cooling || e.record.State == Closed && e.stored.Before(v.begun))
}

func (e learned) adopt(m machine, v view) view {
	r := e.record
	n := view{
		state: r.State, why: r.Why, by: r.By, generation: r.Generation, revision: e.revision,
		epoch: v.epoch + 1, begun: e.stored, coolDown: r.coolDown(), closed: v.closed, tally: r.Failures,
	}
	if r.State.admits() && v.state.admits() { // calls in flight keep their say
		n.epoch, n.failures, n.ramp = v.epoch, slices.Clone(v.failures), v.ramp
	}
	switch r.State {
	case Closed:
		n.why, n.closed = "", e.stored
		if m.Ramp > 0 && !v.state.admits() {
			n.ramp = e.stored.Add(m.Ramp)
		}
	case Cooling:
		n.coolDown, n.wait = v.coolDown, cmp.Or(r.wait(), r.coolDown())
		n.until = n.begun.Add(m.spread(n.wait))
	case Open:
		n.coolDown = cmp.Or(r.coolDown(), m.CoolDown)
		n.wait = cmp.Or(r.wait(), n.coolDown)
		n.until = n.begun.Add(m.spread(n.wait))
	case HalfOpen:
		n.coolDown, n.wait = cmp.Or(r.coolDown(), m.CoolDown), cmp.Or(r.wait(), m.lease())
		n.until = n.begun.Add(n.wait)
	}
	return n
}
