package wire

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// rule is a row of the table: a Problem is its when a code, a status or a phrase
// of it fits.
type rule struct {
	outcome  llm.Outcome
	detail   provider.Detail
	codes    []string // whole, or from a * on the end of one; lower case
	statuses []int    // the status alone is enough
	phrases  []string // parts of the message, lower case
	unless   []int    // statuses under which the phrases say nothing
	only     []int    // statuses under which alone they do; empty is all
}

// rules go from the exact to the general; the first that fits decides. Codes and
// phrases stand in one row because some answers have both and the code misleads:
// a credit stop comes as invalid_request_error, an overflow as code 400. What no
// row knows is decided by the status alone.
func rules() []rule { return append(finalRules(), passingRules()...) }

// finalRules are the failures that no wait cures.
func finalRules() []rule {
	return []rule{
		{outcome: llm.OutcomeRateLimited, codes: []string{"openrouter_in_flight_budget"}},
		{outcome: llm.OutcomeQuotaExhausted, statuses: []int{402},
			codes: []string{
				"insufficient_quota", "credit_balance_exhausted", "billing_error", "enforced_spend_limit_reached",
				"*_spend_limit_exceeded", "*_usage_limit_exceeded", "openrouter_credits", "quota_value_0",
				"billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "insufficient_credits",
			},
			phrases: []string{
				"credit balance is too low", "api usage limits", "prepayment credits are depleted",
				"insufficient balance", "insufficient credits", "key limit exceeded", "spending limit reached",
			}},
		{outcome: llm.OutcomeContextLength,
			codes: []string{"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "model_context_window_exceeded"},
			phrases: []string{
				"context length", "context_length", "context window", "context size", "context limit", "context the overflows",
				"prompt is too long", "max_tokens must be at least 1, got -", "exceeds the maximum number of tokens",
				"`max_new_tokens` must be <=", "too many tokens", "input is too long", "prompt too long",
				"number of tokens exceeds", "tokens exceeds the", "tokens exceed the", "input token count",
			},
			unless: []int{429}},
		{outcome: llm.OutcomeContentFiltered,
			codes: []string{
				"content_filter", "content_policy_violation", "invalid_prompt", "responsibleaipolicyviolation",
				"flagged_input", "content_filtered", "moderation_blocked", "data_inspection_failed",
			}},
		{outcome: llm.OutcomeAuth,
			codes: []string{
				"api_key_invalid", "invalid_api_key", "authentication_error", "permission_error", "permission_denied",
				"unauthenticated", "unsupported_country_region_territory", "service_disabled",
			},
			phrases: []string{"user location is not supported", "api key not valid", "invalid api key"}},
		{outcome: llm.OutcomeInvalidOutput,
			codes:   []string{"tool_use_failed", "json_validate_failed"},
			phrases: []string{"error parsing tool call"}},
		{outcome: llm.OutcomeNotFound,
			codes:   []string{"model_not_found", "deploymentnotfound", "not_found_error", "notfounderror", "not_found", "model_not_available"},
			phrases: []string{"no models loaded", "not found, try pulling it"}},
		{outcome: llm.OutcomeInvalidRequest, detail: provider.DetailUnsupported, statuses: []int{501},
			codes: []string{"not_supported_error", "invalid_function_call", "3280"},
			phrases: []string{
				"does not support tool", "does not support function", "does not support thinking", "does not support image",
				"does not support vision", "thought_signature", "thought signature", "tool call id",
			}},
	}
}

// passingRules are the failures that may pass.
func passingRules() []rule {
	return []rule{
		{outcome: llm.OutcomeUnavailable, detail: provider.DetailSamePath,
			phrases: []string{"requires more system memory"}},
		{outcome: llm.OutcomeOverloaded, statuses: []int{529, 498},
			codes: []string{
				"overloaded_error", "overloaded", "server_is_overloaded", "engine_overloaded", "engine_overloaded_error",
				"capacity_exceeded", "3505", "insufficient_system_resource",
			},
			phrases: []string{
				"overloaded", "high demand", "capacity exceeded", "system capacity", "server busy", "pending requests exceeded",
			},
			unless: []int{400, 401, 403, 404}},
		{outcome: llm.OutcomeOverloaded, phrases: []string{"slow down"}, only: []int{503}},
		{outcome: llm.OutcomeRateLimited, statuses: []int{429},
			codes: []string{
				"rate_limit_error", "rate_limit_exceeded", "rate_limited", "ratelimitreached", "rate_limit",
				"too_many_requests", "slow_down", "1300",
			},
			phrases: []string{"too many requests", "rate limit"},
			unless:  []int{400, 401, 403, 404}},
		{outcome: llm.OutcomeTimeout, statuses: []int{408},
			codes: []string{"timeout_error", "deadline_exceeded", "request_timeout"}},
	}
}

// implied is the status that a type stands for where the answer itself says 2xx.
func implied(codes []string) int {
	for _, c := range codes {
		switch c {
		case "invalid_request_error", "badrequesterror", "invalid_argument", "failed_precondition", "request_too_large":
			return 400
		case "server_error", "api_error", "internal", "internalservererror", "internal_error", "unavailable",
			"unavailable_error", "service_unavailable_error":
			return 500
		case "resource_exhausted":
			return 429
		}
	}
	return 500
}

// Classify decides the class of an error answer: by codes, statuses and phrases
// in the order of the table, and by the status where nothing else is known. The
// Failure holds nothing of the provider's text but its code.
func Classify(p Problem) *provider.Failure {
	status := p.Status
	if status < 300 {
		if status = p.numeric; status == 0 {
			status = implied(p.Codes)
		}
	}
	f := decide(&p, status)
	f.Status, f.RetryAfter = p.Status, p.RetryAfter
	if at := slices.IndexFunc(p.Codes, loggableCode); at >= 0 {
		f.Code = p.Codes[at]
	}
	f.NoRetry = p.ShouldRetry != nil && !*p.ShouldRetry
	return f
}

func decide(p *Problem, status int) *provider.Failure {
	if f := neverFits(p, status); f != nil {
		return f
	}
	message := strings.ToLower(p.message)
	for _, r := range rules() {
		if fits, byPhrase := r.fits(p.Codes, status, message); fits {
			f := provider.Fail(r.outcome, nil)
			f.Detail, f.ByPhrase = r.detail, byPhrase
			return f
		}
	}
	f := byStatus(status, p.HTML)
	if p.ShouldRetry != nil && *p.ShouldRetry && f.Outcome != llm.OutcomeUnavailable {
		// The provider knows better than a final status that nothing explains.
		return provider.Fail(llm.OutcomeUnavailable, nil)
	}
	return f
}

func (r *rule) fits(codes []string, status int, message string) (fits, byPhrase bool) {
	if slices.Contains(r.statuses, status) || slices.ContainsFunc(codes, r.knows) {
		return true, false
	}
	if slices.Contains(r.unless, status) || len(r.only) > 0 && !slices.Contains(r.only, status) {
		return false, false
	}
	found := slices.ContainsFunc(r.phrases, func(phrase string) bool { return strings.Contains(message, phrase) })
	return found, found
}

func (r *rule) knows(code string) bool {
	return slices.ContainsFunc(r.codes, func(known string) bool {
		if end, found := strings.CutPrefix(known, "*"); found {
			return strings.HasSuffix(code, end)
		}
		return code == known
	})
}

var limitAndRequested = regexp.MustCompile(`(?i)limit:? (\d+),.*requested:? (\d+)`)

// neverFits finds a rate limit that the one request alone goes over, so that no
// wait helps.
func neverFits(p *Problem, status int) *provider.Failure {
	limited := slices.Contains(p.Codes, "rate_limit_exceeded")
	if status != 429 && !(status == 413 && limited) {
		return nil
	}
	numbers := limitAndRequested.FindStringSubmatch(p.message)
	if numbers == nil && status == 429 {
		return nil
	}
	if numbers != nil && status == 429 {
		limit, _ := strconv.ParseInt(numbers[1], 10, 64)
		requested, _ := strconv.ParseInt(numbers[2], 10, 64)
		if requested <= limit {
			return nil
		}
	}
	f := provider.Fail(llm.OutcomeRateLimited, nil)
	f.Detail = provider.DetailNeverFits
	return f
}

// byStatus is the class where only the status is known.
func byStatus(status int, html bool) *provider.Failure {
	outcome, detail := llm.OutcomeUnavailable, provider.DetailNone
	switch {
	case status == 401, status == 403 && !html:
		outcome = llm.OutcomeAuth
	case status == 403: // a challenge page stands in the way, not the provider
		detail = provider.DetailSamePath
	case status == 404, status == 405:
		outcome = llm.OutcomeNotFound
	case status == 409, status == 424, status == 425, status == 499:
		detail = provider.DetailNeutral
	case status == 413:
		outcome, detail = llm.OutcomeInvalidRequest, provider.DetailBodyLimit
	case status >= 300 && status < 400: // a redirect, which is not followed
		detail = provider.DetailSamePath
	case status >= 400 && status < 500:
		outcome = llm.OutcomeInvalidRequest
	}
	f := provider.Fail(outcome, nil)
	f.Detail = detail
	return f
}
