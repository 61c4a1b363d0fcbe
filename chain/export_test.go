package chain

import "github.com/llmbus/llmbus/provider"

// Verdict is a row of the failure table in the words of the provider
// transcripts.
type Verdict struct {
	RetrySame               bool
	FailOver, PolicyDefault string
	Trips                   bool
}

// VerdictOf is what the table says of a failure, before or after the caller saw
// text.
func VerdictOf(f *provider.Failure, visible bool) Verdict {
	r := lookup(f.Outcome, f.Detail)
	v := Verdict{Trips: r.trips, FailOver: "no"}
	if visible {
		return v
	}
	v.RetrySame = r.retry != retryNo && !f.NoRetry && (f.RetryAfter == nil || *f.RetryAfter <= longestWait)
	switch r.next {
	case nextYes:
		v.FailOver = "yes"
	case nextByRateLimit:
		v.FailOver, v.PolicyDefault = "policy", "interactive"
	case nextByQuota, nextByOutput:
		v.FailOver, v.PolicyDefault = "policy", "yes"
	case nextByMisconfigured:
		v.FailOver, v.PolicyDefault = "policy", "no"
	case nextByRefusal: // a refusal is not shopped around; closeness to training data may be, by policy
		if f.Detail == provider.DetailRecitation {
			v.FailOver, v.PolicyDefault = "policy", "no"
		}
	case nextCapable:
		v.FailOver, v.PolicyDefault = "policy", "capable_target"
	case nextLargerWindow:
		v.FailOver, v.PolicyDefault = "policy", "larger_context"
	case nextLargerOutput:
		v.FailOver, v.PolicyDefault = "policy", "larger_output_limit"
	}
	return v
}
