package jobs

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

// DeadLetter is a job that was given up, as the LLM_DEAD stream holds it. It is
// the one record of the job that is left, so it holds the request.
type DeadLetter struct {
	ID         string          `json:"id"`
	Feature    string          `json:"feature"`
	Tenant     string          `json:"tenant,omitempty"`
	Error      llm.Error       `json:"error"`
	Attempts   []llm.Attempt   `json:"attempts,omitempty"`         // of all tries, in order
	Omitted    int             `json:"attempts_omitted,omitempty"` // further ones
	Tries      int             `json:"tries"`                      // that the backoff list counts
	Waits      int             `json:"waits,omitempty"`            // tries that it does not count
	Deliveries uint64          `json:"deliveries"`
	Replay     int             `json:"replay,omitempty"` // how often the job was replayed before
	Published  time.Time       `json:"published"`        // by the server's clock, as is Died
	Died       time.Time       `json:"died"`
	Request    json.RawMessage `json:"request,omitempty"` // absent where it was no JSON, or too large

	header   nats.Header
	sequence uint64
}

func newLetter(j *job, h *history, e *llm.Error, now time.Time) *DeadLetter {
	l := &DeadLetter{
		ID: j.id, Feature: j.feature, Tenant: j.tenant, Error: llm.Error{Code: e.Code, Message: e.Message, Degraded: e.Degraded},
		Attempts: h.Attempts, Omitted: h.Omitted, Tries: h.Tries, Waits: h.Waits, Deliveries: j.delivery, Replay: j.replay,
		Published: j.published.UTC(), Died: now.UTC(),
	}
	if json.Valid(j.msg.Data()) {
		l.Request = j.msg.Data()
	}
	return l
}

// without is the letter without what makes it large.
func (l *DeadLetter) without() *DeadLetter {
	short := *l
	short.Request = nil
	return &short
}
