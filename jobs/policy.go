package jobs

import (
	"slices"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// DefaultBackoff is the policy of a feature that names none.
func DefaultBackoff() []time.Duration {
	return []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 120 * time.Second}
}

// Policy says when a failed job is tried again.
type Policy struct {
	// Backoff holds the waits after the first, the second … failed try. A job is
	// tried once more than there are waits.
	Backoff []time.Duration
}

// hopeless are the errors that no further try can cure.
var hopeless = []llm.Code{
	llm.CodeInvalidRequest, llm.CodePolicyDenied, llm.CodeTooLarge, llm.CodeContextLength, llm.CodeContentFiltered, llm.CodeCancelled,
}

// free are the errors of tries that are not counted, besides those of tries
// that asked no provider.
var free = []llm.Code{llm.CodeRateLimited, llm.CodeBusy, llm.CodeSwitchedOff, llm.CodeBudgetExhausted, llm.CodeInterrupted}

// counted reports whether a try that ended so is one of those that the backoff
// list allows. The expiry of a job ends the others.
func counted(e *llm.Error) bool {
	if e.Code == llm.CodeInternal || e.Code == llm.CodeUnknownFeature {
		return true
	}
	return len(e.Attempts) > 0 && !slices.Contains(free, e.Code)
}

// step is what follows a failed try.
type step struct {
	bury *llm.Error    // the job is given up for this reason; nil tries again
	wait time.Duration // before the next try
}

// after decides what follows a failed try. The history includes it; left is
// what remains until the job expires; random is uniform in [0, 1) and spreads
// the return of jobs that were put off together.
func (p Policy) after(e *llm.Error, h *history, left time.Duration, random float64) step {
	if slices.Contains(hopeless, e.Code) {
		return step{bury: e}
	}
	if counted(e) && h.Tries > len(p.Backoff) {
		return step{bury: e}
	}
	wait := e.RetryAfter()
	if wait <= 0 && len(p.Backoff) > 0 {
		wait = p.Backoff[min(max(h.Tries+h.Waits-1, 0), len(p.Backoff)-1)]
	}
	wait = max(wait, leastWait)
	wait += time.Duration(random * float64(wait) / 10)
	if wait >= left {
		return step{bury: expired(e)}
	}
	return step{wait: wait}
}

// leastWait keeps a job that fails at once from spinning.
const leastWait = 100 * time.Millisecond

// expired is the error of a job whose time is over. last may be nil.
func expired(last *llm.Error) *llm.Error {
	e := llm.Errorf(llm.CodeDeadline, "the job expired before it was tried")
	if last != nil {
		e = llm.Errorf(llm.CodeDeadline, "the job expires before its next try; the last ended with %s", last.Code)
		e.Attempts = last.Attempts
	}
	return e
}
