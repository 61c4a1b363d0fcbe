package breaker

import (
	"sync"
	"time"
)

// health remembers whether calls to KV fail. The mirror alone would take its
// re-read interval to notice that JetStream is gone while the connection lives.
type health struct {
	mu          sync.Mutex
	since, last time.Time // of failures without a success in between
}

// note takes the outcome of one call to KV.
func (h *health) note(ok bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case ok:
		h.since = time.Time{}
	case h.since.IsZero():
		h.since, h.last = now, now
	default:
		h.last = now
	}
}

// poor reports that KV has failed for two seconds, which is longer than the
// election of a leader takes. It wears off after three without a call, so that
// the next caller tries.
func (h *health) poor(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.since.IsZero() && now.Sub(h.since) > 2*time.Second && now.Sub(h.last) < 3*time.Second
}
