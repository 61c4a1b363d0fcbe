package chain

import (
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// retry says whether the same target may be called again.
type retry int

const (
	retryNo   retry = iota
	retryYes        // after a back-off, while attempts and time allow
	retryOnce       // the same, once
	retryLast       // after the other targets had their turn
	retryWait       // when the provider's wait has passed, if policy and time allow it
)

// next says whether another target is asked.
type next int

const (
	nextNo              next = iota
	nextYes                  // always
	nextByRateLimit          // Feature.OnRateLimit
	nextByQuota              // Feature.OnQuota
	nextByMisconfigured      // Feature.OnMisconfigured
	nextByRefusal            // Feature.OnRefusal
	nextByOutput             // Feature.OnInvalidOutput
	nextCapable              // targets that declare what is needed, which all that are left do
	nextLargerWindow         // targets with a larger declared context window
	nextLargerOutput         // targets with a larger declared output limit
)

// row is one line of the failure table.
type row struct {
	outcome llm.Outcome
	detail  provider.Detail
	retry   retry
	next    next
	trips   bool     // counts against the breaker; otherwise the call is neutral
	alert   bool     // a person has to do something
	code    llm.Code // the terminal reason where this failure ends the request
}

// table is the whole policy about failures. A detail that has no row of its
// own takes the row of its outcome.
var table = []row{
	{llm.OutcomeConnect, "", retryYes, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeTimeout, "", retryLast, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeFirstTokenTimeout, "", retryNo, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeIdleTimeout, "", retryNo, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeUnavailable, "", retryYes, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeUnavailable, provider.DetailNeutral, retryYes, nextYes, false, false, llm.CodeUnavailable},
	{llm.OutcomeUnavailable, provider.DetailSamePath, retryNo, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeOverloaded, "", retryOnce, nextYes, true, false, llm.CodeUnavailable},
	{llm.OutcomeRateLimited, "", retryWait, nextByRateLimit, false, false, llm.CodeRateLimited},
	{llm.OutcomeRateLimited, provider.DetailNeverFits, retryNo, nextByRateLimit, false, false, llm.CodeRateLimited},
	{llm.OutcomeQuotaExhausted, "", retryNo, nextByQuota, false, true, llm.CodeUnavailable},
	{llm.OutcomeInvalidRequest, "", retryNo, nextNo, false, false, llm.CodeInvalidRequest},
	{llm.OutcomeInvalidRequest, provider.DetailUnsupported, retryNo, nextCapable, false, false, llm.CodeInvalidRequest},
	{llm.OutcomeInvalidRequest, provider.DetailBodyLimit, retryNo, nextByMisconfigured, false, false, llm.CodeTooLarge},
	{llm.OutcomeContextLength, "", retryNo, nextLargerWindow, false, false, llm.CodeContextLength},
	{llm.OutcomeAuth, "", retryNo, nextByMisconfigured, false, true, llm.CodeProviderAuth},
	{llm.OutcomeNotFound, "", retryNo, nextByMisconfigured, false, true, llm.CodeProviderAuth},
	{llm.OutcomeContentFiltered, "", retryNo, nextByRefusal, false, false, llm.CodeContentFiltered},
	{llm.OutcomeInvalidOutput, "", retryOnce, nextByOutput, false, false, llm.CodeInvalidOutput},
	{llm.OutcomeInvalidOutput, provider.DetailLengthCut, retryNo, nextLargerOutput, false, false, llm.CodeInvalidOutput},
	{llm.OutcomeInterrupted, "", retryNo, nextNo, true, false, llm.CodeInterrupted},
	{llm.OutcomeCancelled, "", retryNo, nextNo, false, false, llm.CodeCancelled},
}

// lookup finds the row of a failure. An outcome that is not in the table is a
// fault of an adapter and is treated as an unavailable provider.
func lookup(outcome llm.Outcome, detail provider.Detail) row {
	fallback := row{llm.OutcomeUnavailable, "", retryYes, nextYes, true, false, llm.CodeUnavailable}
	for _, r := range table {
		if r.outcome != outcome {
			continue
		}
		if r.detail == detail {
			return r
		}
		if r.detail == provider.DetailNone {
			fallback = r
		}
	}
	return fallback
}
