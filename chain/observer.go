package chain

import (
	"context"
	"log/slog"
	"regexp"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Names of the events a request gives rise to.
const (
	EventRequestStarted    = "request_started"
	EventRequestSucceeded  = "request_succeeded"
	EventRequestFailed     = "request_failed"
	EventFailoverAttempted = "failover_attempted"
	EventFailoverSucceeded = "failover_succeeded"
	EventFailoverExhausted = "failover_exhausted"
	EventOutputInvalid     = "output_validation_failed"
	EventStreamInterrupted = "stream_interrupted"
)

// Event is one thing that happened to a request. It never holds content.
type Event struct {
	Name         string      `json:"event"`
	Time         time.Time   `json:"time"` // this worker's clock, for people
	RequestID    string      `json:"request_id,omitempty"`
	Feature      string      `json:"feature,omitempty"`
	Tenant       string      `json:"tenant,omitempty"` // hashed
	Provider     string      `json:"provider,omitempty"`
	Model        string      `json:"model,omitempty"`
	Class        llm.Outcome `json:"class,omitempty"` // of the last attempt
	Code         llm.Code    `json:"code,omitempty"`
	Limit        string      `json:"limit,omitempty"` // of limit_exceeded: its name
	Attempts     int         `json:"attempts,omitempty"`
	MS           int64       `json:"ms,omitempty"`
	FirstTokenMS int64       `json:"first_token_ms,omitempty"` // of a stream that succeeded
	CostUSD      float64     `json:"cost_usd,omitempty"`       // of all attempts
}

// Observer hears of events as they happen. It must not block.
type Observer interface {
	Observe(Event)
}

type silent struct{}

func (silent) Observe(Event) {}

// emit tells the observer of an event that has to do with a target.
func (r *run) emit(name string, t *Target) {
	e := Event{Name: name, Time: time.Now(), RequestID: r.req.ID, Feature: r.req.Feature, Tenant: hashTenant(r.req.Tenant),
		Provider: t.Provider, Model: t.Model, Attempts: len(r.attempts)}
	if len(r.attempts) > 0 {
		e.Class = r.attempts[len(r.attempts)-1].Class
	}
	r.env.observer.Observe(e)
}

// alert logs what only a person can mend: a bad key, no credit, a wrong model.
func (e *env) alert(ctx context.Context, req *llm.Request, t *Target, f *provider.Failure) {
	e.log.LogAttrs(ctx, slog.LevelError, "provider needs an operator: "+sentence(f), slog.String("provider", t.Provider),
		slog.String("model", t.Model), slog.String("class", string(f.Outcome)), slog.Int("status", f.Status), slog.String("code", f.Code),
		slog.String("feature", req.Feature), slog.String("provider_request_id", ticket(f.RequestID)))
}

var idForms = regexp.MustCompile(`^(req_[0-9A-Za-z]{12,40}|(req_|req-)?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,40}))$`)

// ticket returns a provider's id of a call if it has a form that they use. Any
// other token could be a piece of an answer, which must not get into a log.
func ticket(id string) string {
	if !idForms.MatchString(id) {
		return ""
	}
	return id
}
