package llm

import (
	"fmt"
	"time"
)

// Code is the terminal reason of a request that got no answer.
type Code string

const (
	CodeInvalidRequest  Code = "invalid_request"
	CodeBudgetExhausted Code = "budget_exhausted"
	CodePolicyDenied    Code = "policy_denied"
	CodeUnknownFeature  Code = "unknown_feature"
	CodeUnknownRequest  Code = "unknown_request"
	CodeTooLarge        Code = "too_large"
	CodeContextLength   Code = "context_length"
	CodeContentFiltered Code = "content_filtered"
	CodeRateLimited     Code = "rate_limited"
	CodeBusy            Code = "busy"
	CodeCancelled       Code = "cancelled"
	CodeInternal        Code = "internal"
	CodeInvalidOutput   Code = "invalid_output"
	CodeInterrupted     Code = "interrupted"
	CodeProviderAuth    Code = "provider_auth"
	CodeUnavailable     Code = "unavailable"
	CodeSwitchedOff     Code = "switched_off"
	CodeDeadline        Code = "deadline"
)

var statuses = map[Code]int{
	CodeInvalidRequest: 400, CodeBudgetExhausted: 402, CodePolicyDenied: 403, CodeUnknownFeature: 404, CodeUnknownRequest: 404,
	CodeTooLarge: 413, CodeContextLength: 413, CodeContentFiltered: 422, CodeRateLimited: 429, CodeBusy: 429,
	CodeCancelled: 499, CodeInternal: 500, CodeInvalidOutput: 502, CodeInterrupted: 502, CodeProviderAuth: 502,
	CodeUnavailable: 503, CodeSwitchedOff: 503, CodeDeadline: 504,
}

// Status is the number that goes with the code in Nats-Service-Error-Code; the
// numbers are those of HTTP. An unknown code is 500.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 500
}

// Sentinels for errors.Is. They match any Error of the same code.
var (
	ErrInvalidRequest  = &Error{Code: CodeInvalidRequest, Message: "invalid request"}
	ErrBudgetExhausted = &Error{Code: CodeBudgetExhausted, Message: "budget exhausted"}
	ErrPolicyDenied    = &Error{Code: CodePolicyDenied, Message: "denied by policy"}
	ErrUnknownFeature  = &Error{Code: CodeUnknownFeature, Message: "unknown feature"}
	ErrUnknownRequest  = &Error{Code: CodeUnknownRequest, Message: "no frames of this request are kept"}
	ErrTooLarge        = &Error{Code: CodeTooLarge, Message: "too large"}
	ErrContextLength   = &Error{Code: CodeContextLength, Message: "too long for every usable model"}
	ErrContentFiltered = &Error{Code: CodeContentFiltered, Message: "refused by the model or a content filter"}
	ErrRateLimited     = &Error{Code: CodeRateLimited, Message: "rate limited by the provider"}
	ErrBusy            = &Error{Code: CodeBusy, Message: "the worker is full"}
	ErrCancelled       = &Error{Code: CodeCancelled, Message: "cancelled by the caller"}
	ErrInternal        = &Error{Code: CodeInternal, Message: "internal error"}
	ErrInvalidOutput   = &Error{Code: CodeInvalidOutput, Message: "the model's answer does not fit"}
	ErrInterrupted     = &Error{Code: CodeInterrupted, Message: "the answer broke off"}
	ErrProviderAuth    = &Error{Code: CodeProviderAuth, Message: "the provider refuses the worker's credentials or settings"}
	ErrUnavailable     = &Error{Code: CodeUnavailable, Message: "no target could serve"}
	ErrSwitchedOff     = &Error{Code: CodeSwitchedOff, Message: "switched off by an operator"}
	ErrDeadline        = &Error{Code: CodeDeadline, Message: "the deadline passed"}
)

// Error is the terminal answer to a request that could not be served. It never
// holds a prompt, a completion, a key or a provider's own error text.
type Error struct {
	Code         Code      `json:"code"`
	Message      string    `json:"message"`
	RetryAfterMS int64     `json:"retry_after_ms,omitempty"` // when to come back; 0 is unknown
	Attempts     []Attempt `json:"attempts,omitempty"`
	Degraded     bool      `json:"degraded,omitempty"` // KV was unreachable
	Job          *Job      `json:"job,omitempty"`      // with CodeInterrupted: a job makes the answer anew

	cause error
}

// Errorf makes an Error. A %w operand becomes its cause; its text is part of
// the message, so it must be fit to be shown to a caller.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: wrapped.Error()}
	if u, ok := wrapped.(interface{ Unwrap() error }); ok {
		e.cause = u.Unwrap()
	}
	return e
}

// Error is "code: message".
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns what led to the error, if it is known on this side of the
// wire.
func (e *Error) Unwrap() error { return e.cause }

// Is matches by code, so that errors.Is(err, llm.ErrDeadline) asks for the
// terminal reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// RetryAfter is RetryAfterMS as a duration; 0 is unknown.
func (e *Error) RetryAfter() time.Duration { return time.Duration(e.RetryAfterMS) * time.Millisecond }
