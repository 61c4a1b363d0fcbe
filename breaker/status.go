package breaker

import (
	"cmp"
	"slices"
	"time"
)

// Status is one breaker as this worker sees it.
type Status struct {
	Key        string    `json:"key"`
	State      State     `json:"state"`
	Why        string    `json:"why,omitempty"`
	Since      time.Time `json:"since"`
	Generation uint64    `json:"generation"`
	RetryMS    int64     `json:"retry_ms,omitempty"`     // until a call may be admitted; open: the next probe
	CoolDownMS int64     `json:"cool_down_ms,omitempty"` // of this or the last open phase
	Failures   int       `json:"failures"`               // that count in the window now, over the fleet
	By         string    `json:"by,omitempty"`           // the worker that made the transition
	Shared     bool      `json:"shared"`                 // false: not yet in the bucket
}

// Snapshot returns all breakers of this process, by key.
func (g *Group) Snapshot() []Status {
	now := time.Now()
	var all []Status
	for _, b := range g.all() {
		all = append(all, b.status(now))
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

func (b *Breaker) status(now time.Time) Status {
	v := b.view.Load()
	s := Status{
		Key: b.key, State: v.shown(now), Why: v.why, Since: v.begun, Generation: v.generation,
		CoolDownMS: v.coolDown.Milliseconds(), Failures: len(v.window(now, b.limits().Window)),
		By: v.by, Shared: !v.pending && v.revision > 0,
	}
	if s.State != Closed {
		s.RetryMS = max(0, v.until.Sub(now)).Milliseconds()
	} else {
		s.Why = ""
	}
	return s
}
