package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// Detail refines an Outcome where the same class asks for different decisions.
type Detail string

const (
	DetailNone        Detail = ""
	DetailNeutral     Detail = "neutral"     // unavailable: says nothing about the provider's health (409, 424, 425, a foreign 499)
	DetailSamePath    Detail = "same_path"   // unavailable: the same call fails the same way (challenge page, model needs more memory)
	DetailNeverFits   Detail = "never_fits"  // rate_limited: one request asks for more than the limit allows
	DetailUnsupported Detail = "unsupported" // invalid_request: another target may be able to
	DetailBodyLimit   Detail = "body_limit"  // invalid_request: the body is larger than this provider, or a proxy before it, takes (413)
	DetailLengthCut   Detail = "length_cut"  // invalid_output: the token limit cut it, and would again
	DetailRecitation  Detail = "recitation"  // content_filtered: too close to training data
)

// Failure is one call that got no usable answer. Its text never holds a prompt,
// a completion, a key or the provider's own words.
type Failure struct {
	Outcome    llm.Outcome
	Detail     Detail
	Status     int              // HTTP status, 0 if none came
	Code       string           // the provider's own error code, for logs: at most 64 of [A-Za-z0-9_.-]
	RetryAfter *time.Duration   // how long the provider asks to be left alone; nil is unknown
	NoRetry    bool             // the provider forbids the same call again (x-should-retry: false)
	ByPhrase   bool             // the class rests on the wording of a message, which may change unannounced: worth a log line
	RequestID  string           // for a support ticket with the provider
	Usage      *llm.Usage       // tokens that are likely billed all the same, if known
	Finish     llm.FinishReason // why the model stopped, where the answer itself is the failure

	err error
}

// Fail makes a Failure. err may be nil; it is for logs and errors.Is, and must
// hold no text that came from the provider or the caller.
func Fail(outcome llm.Outcome, err error) *Failure { return &Failure{Outcome: outcome, err: err} }

// Error says what happened in our words.
func (f *Failure) Error() string {
	s := string(f.Outcome)
	if f.Detail != DetailNone {
		s += " (" + string(f.Detail) + ")"
	}
	if f.Status != 0 {
		s += fmt.Sprintf(": status %d", f.Status)
	}
	if f.Code != "" {
		s += " " + f.Code
	}
	if f.err != nil {
		s += ": " + f.err.Error()
	}
	return s
}

// Unwrap returns what the transport said.
func (f *Failure) Unwrap() error { return f.err }

// AsFailure returns the Failure in err. Any other error is an unexpected one
// of the adapter and counts as unavailable.
func AsFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return Fail(llm.OutcomeUnavailable, &unexpected{err})
}

// unexpected hides the text of an error that nobody has checked for content.
type unexpected struct{ error }

func (u *unexpected) Error() string { return fmt.Sprintf("unexpected error of type %T", u.error) }
func (u *unexpected) Unwrap() error { return u.error }

// FromContext says why a call was stopped from outside: by the limit that is
// the context's cause, or else by the caller.
func FromContext(ctx context.Context) *Failure {
	cause := context.Cause(ctx)
	if f, ok := errors.AsType[*Failure](cause); ok {
		return f
	}
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, llm.ErrDeadline) {
		return Fail(llm.OutcomeTimeout, cause)
	}
	return Fail(llm.OutcomeCancelled, cause)
}
