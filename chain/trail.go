package chain

import (
	"context"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
)

// Skip says why a target is not called, or not once more.
type Skip string

const (
	SkipNotApproved Skip = "not_approved" // for the data class; detail: the class
	SkipRegion      Skip = "region"       // it processes data elsewhere than the feature allows; detail: where
	SkipLacks       Skip = "lacks"        // what the request needs; detail: the capability
	SkipSwitchedOff Skip = "switched_off" // by an operator
	SkipCircuitOpen Skip = "circuit_open" // its breaker refuses; detail: the failure that opened it
	SkipCooling     Skip = "cooling"      // its provider wants to be left alone; detail: rate_limited or quota_exhausted
	SkipOverLimit   Skip = "over_limit"   // of its tenant, which this target is too dear for now; detail: the limit
	SkipNoBetter    Skip = "no_better"    // than one whose context window or output limit was too small
	SkipNoFailover  Skip = "no_failover"  // an earlier target was asked, and the request or a switch forbids another
	SkipNotReached  Skip = "not_reached"  // the request ended before its turn
)

// Candidate is what becomes of one target for one request. A target that was
// called and then not once more has both calls and a reason.
type Candidate struct {
	Provider string      `json:"provider"`
	Model    string      `json:"model"`
	Calls    int         `json:"calls,omitempty"`
	Outcome  llm.Outcome `json:"outcome,omitempty"` // of the last call
	Turn     int         `json:"turn,omitempty"`    // 1 for the target that is asked first, and so on; 0: never
	Skip     Skip        `json:"skipped,omitempty"`
	Detail   string      `json:"detail,omitempty"`
}

// trail follows one request past the targets of its feature. A nil trail takes
// no notes, so that requests which nobody audits pay for none.
type trail struct {
	targets    []Target
	candidates []Candidate // of targets, in their order
	turns      int
	failover   bool
}

// blaze begins a trail; the chain finds it in the context.
func blaze(ctx context.Context, f *Feature) (context.Context, *trail) {
	t := &trail{targets: f.Targets, candidates: make([]Candidate, len(f.Targets))}
	for i := range f.Targets {
		t.candidates[i].Provider, t.candidates[i].Model = f.Targets[i].Provider, f.Targets[i].Model
	}
	return context.WithValue(ctx, trailKey{}, t), t
}

type trailKey struct{}

func trailOf(ctx context.Context) *trail {
	t, _ := ctx.Value(trailKey{}).(*trail)
	return t
}

// of finds the notes on a target.
func (t *trail) of(target *Target) *Candidate {
	for i := range t.targets {
		if &t.targets[i] == target {
			return &t.candidates[i]
		}
	}
	return new(Candidate)
}

func (t *trail) skipped(target *Target, why Skip, detail string) {
	if t != nil {
		c := t.of(target)
		c.Skip, c.Detail = why, detail
	}
}

// refused notes what a breaker says.
func (t *trail) refused(target *Target, open *breaker.OpenError) {
	why := SkipCircuitOpen
	if open.State == breaker.Cooling {
		why = SkipCooling
	}
	t.skipped(target, why, open.Why)
}

func (t *trail) called(target *Target) {
	if t == nil {
		return
	}
	c := t.of(target)
	if c.Calls++; c.Turn == 0 {
		t.turns++
		c.Turn = t.turns
	}
	c.Skip, c.Detail = "", ""
}

// foreseen gives a target the next turn, without a call.
func (t *trail) foreseen(target *Target, probe bool) {
	c := t.of(target)
	t.turns++
	c.Turn = t.turns
	if probe {
		c.Detail = "as the probe of an open circuit"
	}
}

func (t *trail) outcome(target *Target, o llm.Outcome) {
	if t != nil {
		t.of(target).Outcome = o
	}
}

// end gives a reason to every target that was neither called nor skipped.
func (t *trail) end() []Candidate {
	for i := range t.candidates {
		c := &t.candidates[i]
		switch {
		case c.Turn > 0 || c.Skip != "":
		case t.turns > 0 && !t.failover:
			c.Skip = SkipNoFailover
		default:
			c.Skip = SkipNotReached
		}
	}
	return t.candidates
}
