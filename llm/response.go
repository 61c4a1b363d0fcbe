package llm

import (
	"encoding/json"
	"log/slog"
)

// FinishReason says why the model stopped.
type FinishReason string

const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length" // the token limit cut the answer
	FinishToolCalls     FinishReason = "tool_calls"
	FinishContentFilter FinishReason = "content_filter"
	FinishOther         FinishReason = "other"   // the provider gave a reason this version does not know
	FinishUnknown       FinishReason = "unknown" // the provider ended the answer and gave none
)

// ServedBy says what produced the answer.
type ServedBy string

const (
	ServedByModel      ServedBy = "model"
	ServedByFallback   ServedBy = "fallback"    // no target could serve
	ServedByKillSwitch ServedBy = "kill_switch" // a switch is off and the feature has a fallback
)

// FallbackMode names what a feature gives when no model serves.
type FallbackMode string

const (
	FallbackNone   FallbackMode = "none"
	FallbackCached FallbackMode = "cached" // an earlier answer to the same request of the same tenant
	FallbackStatic FallbackMode = "static" // the feature's fixed text
	FallbackQueued FallbackMode = "queued" // a job id now, the answer later
)

// Job says where the answer to a request will be that was handed to a job.
type Job struct {
	ID     string `json:"id"`
	Result string `json:"result"` // the subject of the answer, kept in the LLM_RESULTS stream
}

// Response is the whole answer to a Request.
type Response struct {
	ID           string          `json:"id"`
	Content      string          `json:"content"`
	ToolCalls    []ToolCall      `json:"tool_calls,omitempty"`
	JSON         json.RawMessage `json:"json,omitempty"` // the parsed value where a schema was asked for
	Provider     string          `json:"provider,omitempty"`
	Model        string          `json:"model,omitempty"`
	FinishReason FinishReason    `json:"finish_reason,omitempty"`
	Usage        *Usage          `json:"usage,omitempty"`
	CostUSD      float64         `json:"cost_usd,omitempty"` // all attempts together
	ServedBy     ServedBy        `json:"served_by"`
	Fallback     FallbackMode    `json:"fallback,omitempty"`
	Stale        bool            `json:"stale,omitempty"`    // a cached answer, not made for this request
	Replayed     bool            `json:"replayed,omitempty"` // the answer of an earlier request with the same idempotency key
	Job          *Job            `json:"job,omitempty"`      // with FallbackQueued: where the answer will be
	Attempts     []Attempt       `json:"attempts,omitempty"`
	Timing       Timing          `json:"timing,omitzero"`
	Degraded     bool            `json:"degraded,omitempty"` // KV was unreachable: breakers and switches are this worker's own opinion
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Warnings     []string        `json:"warnings,omitempty"`

	// What adapters learn and the wire does not carry.
	Reasoning         string `json:"-"` // the model's thinking, where the provider shows it
	ModelVersion      string `json:"-"` // the exact model the provider says it ran
	ProviderRequestID string `json:"-"` // for a support ticket with the provider
}

// LogValue keeps completions out of logs.
func (r *Response) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", r.ID), slog.String("provider", r.Provider), slog.String("model", r.Model))
}

// Usage counts tokens. A nil count is unknown, which is not zero: a broken
// stream is billed although its usage never came.
type Usage struct {
	InputTokens       *int64 `json:"input_tokens,omitempty"`        // cached ones included
	OutputTokens      *int64 `json:"output_tokens,omitempty"`       // reasoning included
	CachedInputTokens *int64 `json:"cached_input_tokens,omitempty"` // part of InputTokens
	CacheWriteTokens  *int64 `json:"cache_write_tokens,omitempty"`  // part of InputTokens
	ReasoningTokens   *int64 `json:"reasoning_tokens,omitempty"`    // part of OutputTokens
	Estimated         bool   `json:"estimated,omitempty"`           // counted by us, the provider sent none
}

// Timing of a whole operation, as the worker saw it.
type Timing struct {
	FirstTokenMS int64 `json:"first_token_ms,omitempty"` // streams only
	TotalMS      int64 `json:"total_ms"`
}

// Attempt is one call to a provider, whatever became of it.
type Attempt struct {
	Provider     string  `json:"provider"`
	Model        string  `json:"model"`
	Class        Outcome `json:"class"`
	HTTPStatus   int     `json:"http_status,omitempty"` // 0: no answer came
	MS           int64   `json:"ms"`
	FirstTokenMS int64   `json:"first_token_ms,omitempty"`
	Usage        *Usage  `json:"usage,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`

	Breaker      string `json:"-"` // state of the breaker that let it through, for the log line
	ModelVersion string `json:"-"` // the exact model the provider says it ran
}

// Outcome is how one attempt ended: OutcomeOK, or the class of its failure.
// What follows from each is decided in one table, in package chain.
type Outcome string

const (
	OutcomeOK                Outcome = "ok"
	OutcomeConnect           Outcome = "connect"             // not one response byte arrived: refused, reset, DNS, TLS
	OutcomeTimeout           Outcome = "timeout"             // the attempt's time ran out
	OutcomeFirstTokenTimeout Outcome = "first_token_timeout" // the answer did not begin in time
	OutcomeIdleTimeout       Outcome = "idle_timeout"        // the answer began and then fell silent
	OutcomeUnavailable       Outcome = "unavailable"         // the provider or the path to it is broken
	OutcomeOverloaded        Outcome = "overloaded"          // their capacity, not our quota
	OutcomeRateLimited       Outcome = "rate_limited"        // our quota per time
	OutcomeQuotaExhausted    Outcome = "quota_exhausted"     // no credit: no wait helps
	OutcomeInvalidRequest    Outcome = "invalid_request"     // the provider refuses the request itself
	OutcomeContextLength     Outcome = "context_length"      // too long for this model
	OutcomeAuth              Outcome = "auth"                // our credentials are refused
	OutcomeNotFound          Outcome = "not_found"           // no such model, deployment or route
	OutcomeContentFiltered   Outcome = "content_filtered"    // the model or a filter refused
	OutcomeInvalidOutput     Outcome = "invalid_output"      // a clean answer that is empty or does not fit
	OutcomeInterrupted       Outcome = "stream_interrupted"  // broken after visible text was forwarded
	OutcomeCancelled         Outcome = "cancelled"           // the caller went away
)
