package bus

import (
	"context"
	"errors"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

var (
	// ErrStuck means that Run gave up on requests whose Completer ignores its
	// context. Their callers have been answered.
	ErrStuck = errors.New("bus: requests did not end")

	errNoEnd    = errors.New("the stream stopped without an end frame")
	errNoAnswer = errors.New("the completer gave neither an answer nor an error")

	errSubject = llm.Errorf(llm.CodeInvalidRequest, "the feature in the subject must be %s, and a tenant behind it %s, escaped", subjects.FeatureRule, subjects.TenantRule)

	// errNoTenant keeps requests of nobody from those who may do more than any
	// tenant: no limit and no switch of a tenant would hold for them.
	errNoTenant = llm.Errorf(llm.CodePolicyDenied, "this fleet serves tenants only, and the subject has none: publish through the import of a tenant's account, or with the tenant as the last token")
)

// terminal makes of an error what the caller gets. expected is false for an
// error that a Completer of ours should not return; its text stays here, since
// nobody knows what is in it.
func terminal(ctx context.Context, err error) (e *llm.Error, expected bool) {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e, true
	}
	if ctx.Err() != nil {
		return fromCause(ctx), true
	}
	return llm.Errorf(llm.CodeInternal, "the worker made a mistake; its log tells more"), false
}

// fromCause says why a context that the bus made has ended.
func fromCause(ctx context.Context) *llm.Error {
	if e, ok := errors.AsType[*llm.Error](context.Cause(ctx)); ok {
		return e
	}
	return llm.ErrInterrupted
}
