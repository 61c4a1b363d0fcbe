package chain

import (
	"context"

	"github.com/llmbus/llmbus/llm"
)

// Decision is how one request was routed, or would be. It holds nothing of what
// was asked or answered.
type Decision struct {
	RequestID string      `json:"request_id,omitempty"`
	Feature   string      `json:"feature"`
	Tenant    string      `json:"tenant,omitempty"` // hashed, as in logs
	Class     llm.Class   `json:"class"`
	DataClass string      `json:"data_class,omitempty"` // that was obeyed; absent if the caller's does not exist
	Stream    bool        `json:"stream,omitempty"`
	Job       bool        `json:"job,omitempty"`
	Degraded  bool        `json:"degraded,omitempty"` // switches and breakers were this worker's own opinion
	Targets   []Candidate `json:"targets"`            // all of the feature, in its order

	Provider string           `json:"provider,omitempty"` // that answered
	Model    string           `json:"model,omitempty"`
	ServedBy llm.ServedBy     `json:"served_by,omitempty"`
	Fallback llm.FallbackMode `json:"fallback,omitempty"`
	Code     llm.Code         `json:"code,omitempty"`   // of the error, if there was no answer
	Reason   string           `json:"reason,omitempty"` // the same in words; in an explanation only
	CostUSD  float64          `json:"cost_usd,omitempty"`
	MS       int64            `json:"ms,omitempty"`
}

// Auditor is told how each request of a feature with Audit was routed, when it
// has ended. It must not block.
type Auditor interface {
	Audit(Decision)
}

// decision begins a Decision with what a request says of itself.
func (f *Feature) decision(req *llm.Request, notes *trail) Decision {
	d := Decision{RequestID: req.ID, Feature: req.Feature, Tenant: hashTenant(req.Tenant), Class: req.Class, Stream: req.Stream, Job: req.Job, Targets: notes.end()}
	if f.declared(req.DataClass) {
		d.DataClass = req.DataClass
	}
	return d
}

// auditing goes along with the outermost stage of a feature with Audit: what
// becomes of its targets is noted on the way of each request, and told at its
// end. nil is that of other features, which pay nothing.
type auditing struct {
	feature *Feature
	auditor Auditor
}

// begin has the chain take notes. It returns ctx itself where nobody audits.
func (a *auditing) begin(ctx context.Context) (context.Context, *trail) {
	if a == nil {
		return ctx, nil
	}
	return blaze(ctx, a.feature)
}

func (a *auditing) end(req *llm.Request, notes *trail, e Ending) {
	if a == nil {
		return
	}
	d := a.feature.decision(req, notes)
	d.MS = e.Elapsed.Milliseconds()
	for _, attempt := range e.Attempts() {
		d.CostUSD += attempt.CostUSD
	}
	if e.Error != nil {
		d.Code, d.Degraded = e.Error.Code, e.Error.Degraded
	} else {
		d.Provider, d.Model, d.ServedBy, d.Fallback, d.Degraded = e.Response.Provider, e.Response.Model, e.Response.ServedBy, e.Response.Fallback, e.Response.Degraded
	}
	a.auditor.Audit(d)
}
