package breaker

import (
	"context"
	"sync/atomic"
	"time"
)

// Permit is the right to make one call. Its owner says once how the call
// ended; a permit that is never done costs a probe its lease and nothing else.
type Permit struct {
	b     *Breaker
	epoch uint64
	probe *probe // nil for a call that is no probe
}

// probe is what the owner of the only right in the fleet holds.
type probe struct {
	lease    uint64 // revision in llm_probes; 0: decided without KV
	deadline time.Time
	cool     atomic.Int64 // longest wait that the provider asked for, ns
	done     atomic.Bool
}

// Probe reports whether this is the one call that decides if the breaker
// closes.
func (p Permit) Probe() bool { return p.probe != nil }

// State is the breaker's state when the call was admitted: Closed or HalfOpen.
func (p Permit) State() State {
	if p.probe != nil {
		return HalfOpen
	}
	return Closed
}

// Deadline is when a probe must have ended, since another may begin soon
// after. ok is false for other calls.
func (p Permit) Deadline() (t time.Time, ok bool) {
	if p.probe == nil {
		return time.Time{}, false
	}
	return p.probe.deadline, true
}

// Cool tells that the provider asks to be left alone for d, up to 24 h, as a
// rate limit or an empty account does. It is no failure and does not replace
// Done. After a probe it delays the next one if the result is Neutral.
func (p Permit) Cool(ctx context.Context, d time.Duration, why string) {
	if p.probe == nil {
		p.b.Cool(ctx, d, why)
		return
	}
	for {
		old := p.probe.cool.Load()
		if int64(d) <= old || p.probe.cool.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

// Done says how the call ended, for a stream at its end. It does not wait for
// NATS. Call it exactly once, whatever happened; a cancelled call is Neutral.
func (p Permit) Done(_ context.Context, r Result) {
	if p.probe != nil {
		p.b.probeDone(p, r)
		return
	}
	if r.Kind == Failure {
		p.b.failed(p.epoch, clip(r.Why))
	}
}
