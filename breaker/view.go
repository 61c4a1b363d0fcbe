package breaker

import (
	"slices"
	"time"
)

// State is what a breaker does with calls.
type State string

const (
	Closed   State = "closed"    // admits every call
	Open     State = "open"      // admits no call; after the cool-down, one probe
	HalfOpen State = "half_open" // a probe is out; admits no other call
	Cooling  State = "cooling"   // the provider asked to be left alone; admits no call, then all, without a probe
)

// admits reports whether callers get through without a probe, now or soon.
func (s State) admits() bool { return s == Closed || s == Cooling }

// view is what one worker holds true of one breaker. It is a value: next makes
// a new one and changes none.
type view struct {
	state      State
	why, by    string
	generation uint64 // transitions so far, as shared
	revision   uint64 // of the KV value this builds on, the base of the next compare-and-swap; 0 is none
	epoch      uint64 // what a permit is checked against: local, changes whenever older permits lose their say
	pending    bool   // this worker made it and has not shared it yet

	begun    time.Time     // when the state began, by the local clock
	wait     time.Duration // how long it lasts at least, without jitter
	until    time.Time     // open: first probe; half_open: end of the lease; cooling: end
	claimed  bool          // a caller here is out for the lease
	coolDown time.Duration // of this or the last open phase
	closed   time.Time     // when it last closed; escalation is forgotten a window later
	ramp     time.Time     // closed: not all are admitted until then
	asked    uint64        // calls that met the ramp
	failures []time.Time   // closed and cooling: the newest within the window, oldest first
	tally    int           // failures in the window when it opened
}

// free reports whether every call is admitted without a further look.
func (v view) free() bool { return v.state == Closed && v.ramp.IsZero() }

// ready reports whether a call would likely be admitted.
func (v view) ready(now time.Time) bool {
	return v.state == Closed || !v.claimed && !now.Before(v.until)
}

// shown is the state that people see: a cooling that has run out is over even
// if no caller has come to notice.
func (v view) shown(now time.Time) State {
	if v.state == Cooling && !now.Before(v.until) {
		return Closed
	}
	return v.state
}

// retryAfter is when it may be worth while to come back.
func (v view) retryAfter(now time.Time) time.Duration {
	d := v.until.Sub(now)
	if v.state == HalfOpen {
		d = min(d, time.Second) // probes end long before their lease, mostly
	}
	return max(d, time.Millisecond)
}

// record is what the bucket holds once the view is shared.
func (v view) record(now time.Time) Record {
	r := Record{
		State: v.state, Why: v.why, Since: v.begun.UTC().Truncate(time.Millisecond),
		Generation: v.generation, CoolDownMS: v.coolDown.Milliseconds(), By: v.by, Failures: v.tally,
	}
	if v.state == Closed {
		return r
	}
	left := v.wait
	if late := now.Sub(v.begun); late > time.Second { // KV was out of reach meanwhile
		left = max(left-late, time.Millisecond)
	}
	if v.state == Cooling {
		r.CoolDownMS = v.wait.Milliseconds()
	}
	if left.Milliseconds() != r.CoolDownMS {
		r.WaitMS = left.Milliseconds()
	}
	return r
}

// enter begins another state as this worker's own doing.
func (v view) enter(state State, wait time.Duration, now time.Time) view {
	v.state, v.begun, v.wait, v.until = state, now, wait, now.Add(wait)
	v.generation++
	v.pending, v.claimed = true, false
	v.ramp, v.asked = time.Time{}, 0
	if state != Cooling {
		v.epoch++
		v.failures = nil
	}
	return v
}

// window returns the failures that still count, in a slice of its own.
func (v view) window(now time.Time, window time.Duration) []time.Time {
	first := slices.IndexFunc(v.failures, func(at time.Time) bool { return now.Sub(at) < window })
	if first < 0 {
		return nil
	}
	return slices.Clone(v.failures[first:])
}
