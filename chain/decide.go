package chain

import (
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// longestWait is the longest Retry-After that is ever waited out. A provider
// that asks for more has closed for the day, and its number is only passed on.
const longestWait = 120 * time.Second

// situation is all that a decision depends on.
type situation struct {
	failure  *provider.Failure
	target   *Target
	class    llm.Class
	calls    int           // made on this target so far
	room     time.Duration // what this target may still use of the deadline
	pause    time.Duration // the back-off that is due, jitter included
	probe    bool          // the call was a breaker's probe
	failover bool          // neither the request nor a switch forbids another target
}

// action is what follows a failure.
type action int

const (
	actStop action = iota
	actRetry
	actNext
	actNextThenRetry // put this target behind the others
)

// decision is an action with its wait and the condition on further targets.
type decision struct {
	action action
	wait   time.Duration
	fits   func(*Target) bool // nil: every target
}

// decide turns a failure before commit into what to do next.
func (f *Feature) decide(s situation) decision {
	r := lookup(s.failure.Outcome, s.failure.Detail)
	again, wait := f.retrySame(r, s)
	if again && r.retry != retryLast {
		return decision{action: actRetry, wait: wait}
	}
	moves, fits := f.moveOn(r, s)
	switch {
	case again && moves:
		return decision{action: actNextThenRetry, fits: fits}
	case again:
		return decision{action: actRetry, wait: wait}
	case moves:
		return decision{action: actNext, fits: fits}
	}
	return decision{action: actStop}
}

// retrySame reports whether the same target may be called again, and after
// which wait. A wait that would use up the room is not begun.
func (f *Feature) retrySame(r row, s situation) (bool, time.Duration) {
	if r.retry == retryNo || s.failure.NoRetry || s.probe || s.calls >= s.target.Attempts {
		return false, 0
	}
	if r.retry == retryOnce && s.calls > 1 {
		return false, 0
	}
	wait := s.pause
	if after := s.failure.RetryAfter; after != nil {
		if *after > longestWait {
			return false, 0
		}
		wait += *after
	} else if r.retry == retryWait {
		wait += coolRateLimit
	}
	if r.retry == retryWait && f.OnRateLimit != RateLimitWait && s.class != llm.ClassBackground {
		return false, 0
	}
	return wait < s.room, wait
}

// moveOn reports whether other targets may be asked, and which.
func (f *Feature) moveOn(r row, s situation) (bool, func(*Target) bool) {
	if !s.failover {
		return false, nil
	}
	switch r.next {
	case nextYes, nextCapable:
		return true, nil
	case nextByRateLimit:
		return f.OnRateLimit != RateLimitFail, nil
	case nextByQuota:
		return f.OnQuota != Fail, nil
	case nextByMisconfigured:
		return f.OnMisconfigured == FailOver, nil
	case nextByRefusal:
		return f.OnRefusal == FailOver, nil
	case nextByOutput:
		return f.OnInvalidOutput != Fail, nil
	case nextLargerWindow:
		window := s.target.Can.ContextWindow
		return true, func(t *Target) bool { return t.Can.ContextWindow > window }
	case nextLargerOutput:
		limit := s.target.Can.MaxOutputTokens
		return f.OnInvalidOutput != Fail, func(t *Target) bool { return t.Can.MaxOutputTokens > limit }
	}
	return false, nil
}

// share is the time that one call may take: its own timeout, but no more than
// what remains after every later target has kept either its timeout or an even
// share. The last target gets all that remains.
func share(remaining time.Duration, t *Target, later []*Target) time.Duration {
	if len(later) == 0 {
		return remaining
	}
	even := remaining / time.Duration(len(later)+1)
	for _, l := range later {
		if l.Timeout > 0 {
			remaining -= min(l.Timeout, even)
		} else {
			remaining -= even
		}
	}
	if t.Timeout > 0 {
		return min(t.Timeout, remaining)
	}
	return remaining
}

const (
	backoffBase = 200 * time.Millisecond
	backoffMax  = 5 * time.Second
)

// backoff is a pause with full jitter before call number calls+1 of a target.
// random is uniform in [0, 1).
func backoff(calls int, random float64) time.Duration {
	ceiling := min(backoffBase<<min(calls-1, 10), backoffMax)
	return time.Duration(random * float64(ceiling))
}
