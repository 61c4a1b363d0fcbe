package bus

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/llmbus/llmbus/llm"
)

// Stats are a worker's numbers since it started.
type Stats struct {
	Requests     int64              `json:"requests"`         // taken, refused ones included
	Succeeded    int64              `json:"succeeded"`        // answered without an error
	Errors       map[llm.Code]int64 `json:"errors,omitempty"` // answered with an error, busy included
	InFlight     int                `json:"in_flight"`
	Slots        int                `json:"slots"`
	Busy         int64              `json:"busy"`         // refused since all slots were taken
	Left         int64              `json:"left"`         // times the queue group was left
	Rejoined     int64              `json:"rejoined"`     // times it was joined again
	Cancels      int64              `json:"cancels"`      // requests stopped by llm.cancel
	CallerGone   int64              `json:"caller_gone"`  // requests stopped since nobody listened any more
	BadReply     int64              `json:"bad_reply"`    // dropped: the reply subject is no inbox
	Unanswerable int64              `json:"unanswerable"` // dropped: nobody could get the answer
	Panics       int64              `json:"panics"`
	Resumed      int64              `json:"resumed"` // readers that came back
	Readers      int64              `json:"readers"` // of them, those served now
}

type counters struct {
	requests, succeeded, busy, left, rejoined, cancels, callerGone, badReply, unanswerable, panics, resumed atomic.Int64

	mu     sync.Mutex
	errors map[llm.Code]int64
}

// ended counts an admitted request; e is nil for success.
func (c *counters) ended(e *llm.Error) {
	if e == nil {
		c.succeeded.Add(1)
		return
	}
	c.failed(e.Code)
}

func (c *counters) failed(code llm.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errors == nil {
		c.errors = make(map[llm.Code]int64)
	}
	c.errors[code]++
}

// Stats returns the worker's numbers.
func (w *Worker) Stats() Stats {
	c := &w.stats
	c.mu.Lock()
	codes := maps.Clone(c.errors)
	c.mu.Unlock()
	used, _ := w.slots.load()
	return Stats{
		Requests: c.requests.Load(), Succeeded: c.succeeded.Load(), Errors: codes,
		InFlight: used, Slots: w.cfg.Slots, Busy: c.busy.Load(), Left: c.left.Load(), Rejoined: c.rejoined.Load(),
		Cancels: c.cancels.Load(), CallerGone: c.callerGone.Load(),
		BadReply: c.badReply.Load(), Unanswerable: c.unanswerable.Load(), Panics: c.panics.Load(),
		Resumed: c.resumed.Load(), Readers: w.readers.n.Load(),
	}
}
