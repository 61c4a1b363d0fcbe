package limits

import (
	"errors"
	"fmt"
	"time"
)

// Exceeded says which limit a request does not fit and when to come back. The
// request has used up nothing.
type Exceeded struct {
	Limit
	Feature    string        // the limit is about this feature; empty: about all
	Wanted     int64         // what the request would need, where that is more than one
	RetryAfter time.Duration // until the window is over, or a guess for Concurrent
	Degraded   bool          // JetStream was out of reach and this worker decided alone
}

func (e *Exceeded) Error() string {
	where := ""
	if e.Feature != "" {
		where = " on feature " + e.Feature
	}
	wait := e.RetryAfter.Round(100 * time.Millisecond)
	if wait > time.Minute {
		wait = wait.Round(time.Second)
	}
	switch {
	case e.Kind == Concurrent:
		return fmt.Sprintf("the tenant's limit of %s%s is reached; come back when one has ended", e.Limit, where)
	case e.Kind == USD:
		return fmt.Sprintf("the tenant's budget of %s%s leaves too little for this request; the next begins in %s", e.Limit, where, wait)
	case e.Wanted > 1:
		return fmt.Sprintf("the tenant's limit of %s%s leaves too little for this request of about %d; come back in %s", e.Limit, where, e.Wanted, wait)
	}
	return fmt.Sprintf("the tenant's limit of %s%s is reached; come back in %s", e.Limit, where, wait)
}

var (
	errNotCounter = errors.New("the stream does not count; delete it with the nats CLI and start a worker again")
	errConflicts  = errors.New("other workers changed the record all the time")
	errDown       = errors.New("JetStream was out of reach a moment ago")
)
