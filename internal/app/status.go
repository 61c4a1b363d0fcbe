package app

import (
	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/config"
)

// Status is what a worker says of itself on llm.status, beside the numbers of
// the bus.
type Status struct {
	Worker   string           `json:"worker"`
	NATS     string           `json:"nats"`                   // the server it is connected to
	Degraded bool             `json:"degraded,omitempty"`     // breakers, switches or limits are its own opinion, since KV is out of reach
	Behind   bool             `json:"usage_behind,omitempty"` // usage is counted, and cannot be put into KV
	Lost     uint64           `json:"audit_lost,omitempty"`   // records of routing that this worker could not keep
	Features []FeatureStatus  `json:"features"`
	Refused  []string         `json:"refused,omitempty"` // parts of the configuration that could not be taken, and why
	Breakers []breaker.Status `json:"breakers"`
}

// FeatureStatus is one feature in force.
type FeatureStatus struct {
	Name    string   `json:"name"`
	Targets []string `json:"targets"` // provider/model, in order of preference
}

func (w *worker) status() any {
	s := Status{Worker: w.name, NATS: w.conn.ConnectedUrlRedacted(), Degraded: w.breakers.Degraded() || w.limiter.Degraded(), Breakers: w.breakers.Snapshot()}
	_, s.Behind = w.usage.Behind()
	s.Lost = w.audit.Lost()
	if cfg := w.policy.inForce.Load(); cfg != nil {
		s.Features, s.Refused = featuresOf(cfg), *w.policy.refused.Load()
	}
	return s
}

func featuresOf(cfg *config.Config) []FeatureStatus {
	var list []FeatureStatus
	for _, f := range cfg.Features {
		status := FeatureStatus{Name: f.Name}
		for _, t := range f.Targets {
			status.Targets = append(status.Targets, t.Provider+"/"+t.Model)
		}
		list = append(list, status)
	}
	return list
}
