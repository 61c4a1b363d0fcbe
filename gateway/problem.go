package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/llmbus/llmbus/llm"
)

// Response headers.
const (
	headerRequestID   = "X-Request-Id"
	headerProvider    = "X-Llmbus-Provider"
	headerServedBy    = "X-Llmbus-Served-By"
	headerFallback    = "X-Llmbus-Fallback"
	headerWarnings    = "X-Llmbus-Warnings"
	headerJob         = "X-Llmbus-Job"
	headerShouldRetry = "X-Should-Retry" // what the official SDKs obey before any status
	headerRetryMS     = "Retry-After-Ms"
	headerRetry       = "Retry-After"
)

// Types of errors that OpenAI uses.
const (
	kindInvalid    = "invalid_request_error"
	kindServer     = "server_error"
	kindOverloaded = "overloaded_error"
	kindRate       = "requests"
	kindQuota      = "insufficient_quota"
)

// problem is an error in the form of the API.
type problem struct {
	status  int
	kind    string // type
	code    string
	param   string // the field that is wrong; empty: null
	message string
	retry   bool  // the same request may go well in a while
	afterMS int64 // when to come back; 0 is unknown
	job     string
}

// longestWaitMS is what official SDKs wait at most, in milliseconds. Some take a
// longer Retry-After for none and come back at once.
const longestWaitMS = 60_000

// write answers with the problem. Nothing may have been written before.
func (p problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	retry := p.retry && p.afterMS <= longestWaitMS
	h.Set(headerShouldRetry, strconv.FormatBool(retry))
	if p.afterMS > 0 {
		h.Set(headerRetry, strconv.FormatInt((p.afterMS+999)/1000, 10))
		h.Set(headerRetryMS, strconv.FormatInt(p.afterMS, 10))
	}
	if p.job != "" {
		h.Set(headerJob, p.job)
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(append(p.appendJSON(nil), '\n')) // fails only when the caller is gone
}

// appendJSON appends {"error": …} with the four members of the API.
func (p problem) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = llm.AppendString(dst, p.message)
	dst = append(dst, `,"type":`...)
	dst = llm.AppendString(dst, p.kind)
	dst = append(dst, `,"param":`...)
	dst = appendOptional(dst, p.param)
	dst = append(dst, `,"code":`...)
	dst = appendOptional(dst, p.code)
	return append(dst, "}}"...)
}

// appendOptional appends a string, or null for none.
func appendOptional(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return llm.AppendString(dst, s)
}

// translation is how an error of the bus looks to an OpenAI client.
type translation struct {
	status int
	kind   string
	code   string // empty: the code of the bus
	retry  bool
}

// translations follow OpenAI where it has a word for it, so that callers that
// look for context_length_exceeded or insufficient_quota find them. The chain
// has tried what can be tried, so that only what time may heal is worth another
// request: a later one, not one with a new deadline at once.
var translations = map[llm.Code]translation{
	llm.CodeInvalidRequest:  {http.StatusBadRequest, kindInvalid, "", false},
	llm.CodeBudgetExhausted: {http.StatusTooManyRequests, kindQuota, "insufficient_quota", false},
	llm.CodePolicyDenied:    {http.StatusForbidden, kindInvalid, "", false},
	llm.CodeUnknownFeature:  {http.StatusNotFound, kindInvalid, "model_not_found", false},
	llm.CodeUnknownRequest:  {http.StatusNotFound, kindInvalid, "", false},
	llm.CodeTooLarge:        {http.StatusRequestEntityTooLarge, kindInvalid, "", false},
	llm.CodeContextLength:   {http.StatusBadRequest, kindInvalid, "context_length_exceeded", false},
	llm.CodeContentFiltered: {http.StatusBadRequest, kindInvalid, "content_filter", false},
	llm.CodeRateLimited:     {http.StatusTooManyRequests, kindRate, "rate_limit_exceeded", true},
	llm.CodeBusy:            {http.StatusTooManyRequests, kindOverloaded, "", true},
	llm.CodeCancelled:       {499, kindServer, "", false},
	llm.CodeInternal:        {http.StatusInternalServerError, kindServer, "", false},
	llm.CodeInvalidOutput:   {http.StatusBadGateway, kindServer, "", false},
	llm.CodeInterrupted:     {http.StatusBadGateway, kindServer, "", true},
	llm.CodeProviderAuth:    {http.StatusBadGateway, kindServer, "", false},
	llm.CodeUnavailable:     {http.StatusServiceUnavailable, kindServer, "", true},
	llm.CodeSwitchedOff:     {http.StatusServiceUnavailable, kindServer, "", false},
	llm.CodeDeadline:        {http.StatusGatewayTimeout, kindServer, "", false},
}

// problemOf translates an error of the client.
func problemOf(err error) problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return *p
	}
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		if errors.Is(err, errStopped) {
			return problemOf(llm.Errorf(llm.CodeInterrupted, "%w", errStopped))
		}
		return problemOf(llm.Errorf(llm.CodeInternal, "the gateway could not ask"))
	}
	t, known := translations[e.Code]
	if !known {
		t = translation{status: e.Code.Status(), kind: kindServer}
	}
	// Workers lengthen such a wait by up to a tenth, each by itself. Who comes back
	// sooner uses up one of its few retries.
	p := problem{status: t.status, kind: t.kind, code: t.code, message: e.Message, retry: t.retry, afterMS: (e.RetryAfterMS*11 + 9) / 10}
	if p.code == "" {
		p.code = string(e.Code)
	}
	switch {
	case e.Code == llm.CodeInvalidRequest:
		p.param = paramOf(e.Message)
	case e.Code == llm.CodeUnknownFeature:
		p.param = "model"
	case e.Job != nil:
		p.job, p.retry = e.Job.ID, false
	}
	return p
}

// Error makes a problem an error, for decoders.
func (p *problem) Error() string { return p.message }

var fieldPath = regexp.MustCompile(`^([a-z_]+)(\[\d+\])?(\.[a-z_]+(\[\d+\])?)*[ :]`)

// paramOf finds the field that a message of the bus begins with, in the words of
// the API.
func paramOf(message string) string {
	match := fieldPath.FindStringSubmatch(message)
	switch {
	case match == nil:
		return ""
	case match[1] == "json_schema":
		return "response_format"
	case !isField(match[1]):
		return ""
	}
	return strings.TrimRight(match[0], " :")
}

func unknownPath(r *http.Request) problem {
	return problem{status: http.StatusNotFound, kind: kindInvalid, code: "unknown_url",
		message: fmt.Sprintf("there is no %s %.80s; there are POST /v1/chat/completions, GET /v1/models, /healthz and /readyz", r.Method, r.URL.Path)}
}
