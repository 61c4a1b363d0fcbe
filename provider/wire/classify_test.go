package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// answer is the outcome and detail that an error body must lead to.
type answer struct {
	outcome llm.Outcome
	detail  provider.Detail
}

func TestClassify(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   answer
	}{
		"in-flight budget is a rate":       {402, `{"error":{"code":402,"message":"x","metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, answer{outcome: llm.OutcomeRateLimited}},
		"402 is a bill":                    {402, `{"error":{"code":402,"message":"x"}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"402 as a page":                    {402, `<html>`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"project spend limit":              {429, `{"error":{"code":"project_spend_limit_exceeded","type":"insufficient_quota"}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"organization usage limit":         {429, `{"error":{"code":"organization_usage_limit_exceeded"}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"enforced spend limit":             {429, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"quota of zero":                    {429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x","details":[{"violations":[{"quotaId":"PerDay","quotaValue":"0"}]}]}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"credit balance under 400":         {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to go on."}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"API usage limits under 400":       {400, `{"error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits."}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"prepaid credits under 429":        {429, `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"a key's budget under 403":         {403, `{"error":{"code":403,"message":"Key limit exceeded (total limit)"}}`, answer{outcome: llm.OutcomeQuotaExhausted}},
		"context by code":                  {400, `{"error":{"code":"context_length_exceeded"}}`, answer{outcome: llm.OutcomeContextLength}},
		"context by type":                  {400, `{"error":{"code":400,"type":"exceed_context_size_error"}}`, answer{outcome: llm.OutcomeContextLength}},
		"context under 500":                {500, `{"error":"ValueError: this model's maximum context length is 4096 tokens"}`, answer{outcome: llm.OutcomeContextLength}},
		"context under 403":                {403, `{"error":{"message":"Input validation error: this exceeds the context length","type":"invalid_request_error"}}`, answer{outcome: llm.OutcomeContextLength}},
		"context under 200":                {200, `{"error":{"message":"the request exceeds the available context size","type":"server_error"}}`, answer{outcome: llm.OutcomeContextLength}},
		"context by max_new_tokens":        {400, "{\"error\":{\"message\":\"`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 512 `max_new_tokens`\"}}", answer{outcome: llm.OutcomeContextLength}},
		"context by negative max_tokens":   {400, `{"object":"error","message":"max_tokens must be at least 1, got -120.","code":400}`, answer{outcome: llm.OutcomeContextLength}},
		"context by Anthropic's sum":       {400, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 1 + 2 > 3\"}}", answer{outcome: llm.OutcomeContextLength}},
		"a token rate is no context":       {429, `{"error":{"code":"429","message":"Requests have exceeded the context window token rate limit"}}`, answer{outcome: llm.OutcomeRateLimited}},
		"filter in innererror":             {400, `{"error":{"code":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, answer{outcome: llm.OutcomeContentFiltered}},
		"flagged as policy":                {400, `{"error":{"code":"invalid_prompt","type":"invalid_request_error"}}`, answer{outcome: llm.OutcomeContentFiltered}},
		"moderation":                       {403, `{"error":{"code":403,"metadata":{"flagged_input":"x"}}}`, answer{outcome: llm.OutcomeContentFiltered}},
		"bad key under 400":                {400, `[{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, answer{outcome: llm.OutcomeAuth}},
		"location under 400":               {400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, answer{outcome: llm.OutcomeAuth}},
		"country":                          {403, `{"error":{"code":"unsupported_country_region_territory"}}`, answer{outcome: llm.OutcomeAuth}},
		"flat 401":                         {401, `{"statusCode":401,"message":"Unauthorized. Access token is missing"}`, answer{outcome: llm.OutcomeAuth}},
		"tool use failed":                  {400, `{"error":{"code":"tool_use_failed","type":"invalid_request_error"}}`, answer{outcome: llm.OutcomeInvalidOutput}},
		"tool call not parsed":             {500, `{"error":"error parsing tool call: raw='{', err=unexpected end"}`, answer{outcome: llm.OutcomeInvalidOutput}},
		"no models loaded under 400":       {400, `{"error":"No models loaded. Please load a model in the developer page."}`, answer{outcome: llm.OutcomeNotFound}},
		"deployment":                       {404, `{"error":{"code":"DeploymentNotFound"}}`, answer{outcome: llm.OutcomeNotFound}},
		"model under 403":                  {403, `{"error":{"code":"model_not_found","message":"no access"}}`, answer{outcome: llm.OutcomeNotFound}},
		"wrong method":                     {405, ``, answer{outcome: llm.OutcomeNotFound}},
		"no tools":                         {400, `{"error":"model x does not support tools"}`, answer{llm.OutcomeInvalidRequest, provider.DetailUnsupported}},
		"no thinking":                      {400, `{"error":"\"x\" does not support thinking"}`, answer{llm.OutcomeInvalidRequest, provider.DetailUnsupported}},
		"not supported":                    {501, `{"error":{"type":"not_supported_error"}}`, answer{llm.OutcomeInvalidRequest, provider.DetailUnsupported}},
		"thought signature":                {400, `{"error":{"message":"Function call is missing a thought_signature"}}`, answer{llm.OutcomeInvalidRequest, provider.DetailUnsupported}},
		"foreign tool call id":             {400, `{"object":"error","message":"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","code":"3280"}`, answer{llm.OutcomeInvalidRequest, provider.DetailUnsupported}},
		"a value is not a capability":      {400, `{"error":{"code":"unsupported_value","message":"'temperature' does not support 0.2 with this model."}}`, answer{outcome: llm.OutcomeInvalidRequest}},
		"more than the limit":              {429, `{"error":{"code":"rate_limit_exceeded","message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 36278."}}`, answer{llm.OutcomeRateLimited, provider.DetailNeverFits}},
		"more than the limit under 413":    {413, `{"error":{"code":"rate_limit_exceeded","message":"Request too large: Limit 6000, Requested 7011"}}`, answer{llm.OutcomeRateLimited, provider.DetailNeverFits}},
		"less than the limit":              {429, `{"error":{"code":"rate_limit_exceeded","message":"TPM: Limit 6000, Used 5034, Requested 1443."}}`, answer{outcome: llm.OutcomeRateLimited}},
		"529":                              {529, ``, answer{outcome: llm.OutcomeOverloaded}},
		"498":                              {498, `{"error":{"message":"x"}}`, answer{outcome: llm.OutcomeOverloaded}},
		"overloaded rewritten to 500":      {500, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, answer{outcome: llm.OutcomeOverloaded}},
		"Mistral's capacity under 429":     {429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}`, answer{outcome: llm.OutcomeOverloaded}},
		"Azure's high demand under 429":    {429, `{"error":{"code":"429","message":"The service is experiencing high demand. Please retry."}}`, answer{outcome: llm.OutcomeOverloaded}},
		"Azure's system capacity":          {429, `{"error":{"code":"RateLimitReached","message":"exceeded the maximum usage size of the system capacity"}}`, answer{outcome: llm.OutcomeOverloaded}},
		"slow down under 503":              {503, `{"error":{"message":"Slow Down","type":"server_error"}}`, answer{outcome: llm.OutcomeOverloaded}},
		"slow down under 429":              {429, `{"error":{"message":"slow down","code":429}}`, answer{outcome: llm.OutcomeRateLimited}},
		"overloaded is no excuse for 400":  {400, `{"error":{"message":"operator overloaded"}}`, answer{outcome: llm.OutcomeInvalidRequest}},
		"rate within 200 by number":        {200, `{"error":{"code":429,"message":"x"}}`, answer{outcome: llm.OutcomeRateLimited}},
		"rate within 200 by type":          {200, `{"type":"error","error":{"type":"rate_limit_error"}}`, answer{outcome: llm.OutcomeRateLimited}},
		"rate within 200 by status_code":   {200, `{"error":{"message":"x","status_code":429}}`, answer{outcome: llm.OutcomeRateLimited}},
		"flat rate with raw_status_code":   {200, `{"object":"error","message":"x","type":"y","code":"1","raw_status_code":429}`, answer{outcome: llm.OutcomeRateLimited}},
		"timeout by code":                  {504, `{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}`, answer{outcome: llm.OutcomeTimeout}},
		"timeout by type within 200":       {200, `{"error":{"type":"timeout_error"}}`, answer{outcome: llm.OutcomeTimeout}},
		"408":                              {408, ``, answer{outcome: llm.OutcomeTimeout}},
		"memory":                           {500, `{"error":"model requires more system memory (5.6 GiB) than is available (4.1 GiB)"}`, answer{llm.OutcomeUnavailable, provider.DetailSamePath}},
		"401 as a page":                    {401, `<html>`, answer{outcome: llm.OutcomeAuth}},
		"403":                              {403, `{"error":{"message":"x"}}`, answer{outcome: llm.OutcomeAuth}},
		"403 as a page":                    {403, "\n<!DOCTYPE html>", answer{llm.OutcomeUnavailable, provider.DetailSamePath}},
		"404":                              {404, ``, answer{outcome: llm.OutcomeNotFound}},
		"409":                              {409, ``, answer{llm.OutcomeUnavailable, provider.DetailNeutral}},
		"424":                              {424, ``, answer{llm.OutcomeUnavailable, provider.DetailNeutral}},
		"425":                              {425, ``, answer{llm.OutcomeUnavailable, provider.DetailNeutral}},
		"499":                              {499, ``, answer{llm.OutcomeUnavailable, provider.DetailNeutral}},
		"413":                              {413, `<html>`, answer{llm.OutcomeInvalidRequest, provider.DetailBodyLimit}},
		"422":                              {422, `{"detail":[{"msg":"Field required"}]}`, answer{outcome: llm.OutcomeInvalidRequest}},
		"418":                              {418, ``, answer{outcome: llm.OutcomeInvalidRequest}},
		"a redirect":                       {302, ``, answer{llm.OutcomeUnavailable, provider.DetailSamePath}},
		"500":                              {500, `{"error":{"type":"invalid_request_error","message":"x"}}`, answer{outcome: llm.OutcomeUnavailable}},
		"502":                              {502, `<html>`, answer{outcome: llm.OutcomeUnavailable}},
		"503 as text":                      {503, `upstream connect error or disconnect/reset before headers`, answer{outcome: llm.OutcomeUnavailable}},
		"504 as a page":                    {504, `<html>`, answer{outcome: llm.OutcomeUnavailable}},
		"520":                              {520, ``, answer{outcome: llm.OutcomeUnavailable}},
		"within 200, invalid":              {200, `{"error":{"type":"invalid_request_error"}}`, answer{outcome: llm.OutcomeInvalidRequest}},
		"within 200, nothing known":        {200, `{"error":{"message":"x"}}`, answer{outcome: llm.OutcomeUnavailable}},
		"within 200, error true":           {200, `{"error":true,"message":"x"}`, answer{outcome: llm.OutcomeUnavailable}},
		"within 200, missing key":          {200, `{"error":{"code":401,"message":"x"}}`, answer{outcome: llm.OutcomeAuth}},
		"within 200, an element of a list": {200, `[{"error":{"code":503,"status":"UNAVAILABLE","message":"The model is overloaded."}}]`, answer{outcome: llm.OutcomeOverloaded}},
	} {
		t.Run(name, func(t *testing.T) {
			p, ok := ReadProblem([]byte(tc.body))
			require.Equal(t, strings.HasPrefix(tc.body, "{") || strings.HasPrefix(tc.body, "["), ok, "only error objects are")
			p.Status = tc.status
			f := Classify(p)
			require.Equal(t, tc.want, answer{f.Outcome, f.Detail})
			require.Equal(t, tc.status, f.Status)
		})
	}
}

func TestClassifyObeysShouldRetry(t *testing.T) {
	p := Problem{Status: 400, ShouldRetry: new(true)}
	require.Equal(t, llm.OutcomeUnavailable, Classify(p).Outcome)
	p.Codes = []string{"context_length_exceeded"}
	require.Equal(t, llm.OutcomeContextLength, Classify(p).Outcome, "an exact cause is known")
	require.Equal(t, provider.DetailNeutral, Classify(Problem{Status: 409, ShouldRetry: new(true)}).Detail)

	require.True(t, Classify(Problem{Status: 429, ShouldRetry: new(false)}).NoRetry)
	require.False(t, Classify(Problem{Status: 429, ShouldRetry: new(true)}).NoRetry)
}

func TestClassifySaysWhenAPhraseDecided(t *testing.T) {
	byPhrase, byCode := ProblemText("the model is overloaded"), ProblemCode("overloaded_error")
	require.True(t, Classify(byPhrase).ByPhrase)
	require.False(t, Classify(byCode).ByPhrase)
	require.Equal(t, "overloaded_error", Classify(byCode).Code)
}

func TestReadProblemReadsWaitsAndIDs(t *testing.T) {
	p, _ := ReadProblem([]byte(`{"error":{"code":429,"details":[{"@type":"t","retryDelay":"34.074824224s"}]},"request_id":"req_1"}`))
	require.Equal(t, 34074*time.Millisecond, *p.RetryAfter)
	require.Equal(t, "req_1", p.RequestID)
	for _, delay := range []string{`"-1s"`, `"soon"`, `5`, `null`, `"NaNs"`} {
		p, _ := ReadProblem([]byte(`{"error":{"details":[{"retryDelay":` + delay + `}]}}`))
		require.Nil(t, p.RetryAfter, delay)
	}
}

func TestNoErrorObject(t *testing.T) {
	for _, body := range []string{``, `null`, `1`, `"x"`, `[]`, `[1]`, `{}`, `{"error":null}`, `{"error":""}`, `{"error":false}`, `{"error":`, `{"choices":[]}`, `{"object":"response","error":null}`, `no luck`} {
		_, ok := ReadProblem([]byte(body))
		require.False(t, ok, body)
	}
}

func TestCodesThatCouldHoldSecretsAreDropped(t *testing.T) {
	for _, c := range []string{"sk-abcdef", "AIzaSyAbc", "a sentence", strings.Repeat("x", 65), "ünsafe", "line\nbreak"} {
		require.Empty(t, Classify(ProblemCode(c)).Code, c)
	}
	require.Empty(t, Classify(ProblemCode("canary_1")).Code, "what no provider documents could be anything")
	require.Equal(t, "invalid_api_key", Classify(Problem{Status: 401, Codes: []string{"canary", "invalid_api_key"}}).Code)
}

func FuzzReadProblem(f *testing.F) {
	for _, body := range []string{`{"error":{"code":1,"details":[{}],"metadata":{}}}`, `[[[{"error":"x"}]]]`, `{"object":"error","message":{}}`, `<`} {
		f.Add([]byte(body), 500)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		p, _ := ReadProblem(body)
		p.Status = status
		failure := Classify(p)
		require.NotEmpty(t, failure.Outcome)
		require.NotEqual(t, llm.OutcomeOK, failure.Outcome)
		require.LessOrEqual(t, len(failure.Code), maxCode)
	})
}
