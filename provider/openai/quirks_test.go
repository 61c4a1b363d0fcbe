package openai_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/openai"
)

// stream asks a server that sends the events for a stream.
func stream(t *testing.T, api openai.API, fault string, events ...string) vectors.Result {
	t.Helper()
	u := &vectors.Upstream{Status: 200, Headers: map[string]string{"Content-Type": "text/event-stream"}, Fault: fault, Chunks: []vectors.Chunk{}}
	for _, e := range events {
		if !strings.ContainsAny(e[:1], ":de") {
			e = "data: " + e + "\n\n"
		}
		u.Chunks = append(u.Chunks, vectors.Chunk{Data: e})
	}
	server := vectors.Serve(t, u)
	p, err := openai.New(openai.Config{BaseURL: server.URL, API: api})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	v := &vectors.Vector{Name: "x", Stream: true}
	require.NoError(t, v.Ask("hi"))
	limit := provider.Timeouts{FirstToken: 2 * time.Second, Idle: 100 * time.Millisecond, Total: 5 * time.Second}
	return vectors.Ask(t, &provider.Timed{Inner: p, Limit: limit}, v)
}

const (
	word   = `{"choices":[{"delta":{"content":"hi"}}]}`
	finish = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	done   = "data: [DONE]\n\n"
)

func TestStreamEnds(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	for name, tc := range map[string]struct {
		fault  string
		events []string
		finish llm.FinishReason
		output int64 // tokens; 0 is unknown
	}{
		"a stall after the finish reason":   {"stall", []string{word, finish}, llm.FinishStop, 0},
		"a stall after the usage":           {"stall", []string{word, finish, usage}, llm.FinishStop, 4},
		"a reset after the finish reason":   {"reset", []string{word, finish}, llm.FinishStop, 0},
		"a stall after [DONE]":              {"stall", []string{word, finish, usage, done}, llm.FinishStop, 4},
		"[DONE] without its blank line":     {"stall", []string{word, finish, "data: [DONE]\n"}, llm.FinishStop, 0},
		"[DONE] without a reason":           {"", []string{word, done}, llm.FinishUnknown, 0},
		"usage on the finish chunk":         {"", []string{word, `{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, done}, llm.FinishLength, 4},
		"usage in every chunk, last wins":   {"", []string{`{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, finish, usage, usage, done}, llm.FinishStop, 4},
		"reasoning beside the completion":   {"", []string{word, finish, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":20}}`, done}, llm.FinishStop, 17},
		"empty reasons are none":            {"", []string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}`, finish, done}, llm.FinishStop, 0},
		"an unknown reason":                 {"", []string{word, `{"choices":[{"delta":{},"finish_reason":"bored"}]}`}, llm.FinishOther, 0},
		"a null error in every chunk":       {"", []string{`{"error":null,"choices":[{"delta":{"content":"hi"}}]}`, finish}, llm.FinishStop, 0},
		"fields of other types":             {"", []string{`{"id":5,"system_fingerprint":{},"choices":[{"delta":{"content":"hi","reasoning":{"a":1},"refusal":7}}]}`, finish}, llm.FinishStop, 0},
		"other choices":                     {"", []string{`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"hi"}}]}`, finish}, llm.FinishStop, 0},
		"unknown chunks":                    {"", []string{`{"type":"ping"}`, word, `{}`, finish}, llm.FinishStop, 0},
		"content as parts":                  {"", []string{`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`, `{"choices":[{"delta":{"content":[{"type":"text","text":"hi"}]}}]}`, finish}, llm.FinishStop, 0},
		"messages instead of deltas":        {"", []string{`{"choices":[{"message":{"content":"hi"}}]}`, finish}, llm.FinishStop, 0},
		"an error after the finish reason":  {"", []string{word, finish, `{"error":{"message":"x"}}`}, llm.FinishStop, 0},
		"the last line without its end":     {"", []string{word, "data: " + finish}, llm.FinishStop, 0},
		"a filter that did not run (Azure)": {"", []string{`{"choices":[],"prompt_filter_results":[]}`, `{"choices":[{"delta":{"content":"hi"},"content_filter_results":{"error":{"code":"content_filter_error"}}}]}`, finish}, llm.FinishStop, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := stream(t, openai.APIChat, tc.fault, tc.events...)
			require.NotNil(t, got.Response, "%v", got.Failure)
			require.Equal(t, "hi", got.Response.Content)
			require.Equal(t, tc.finish, got.Response.FinishReason)
			if tc.output == 0 {
				require.Nil(t, got.Response.Usage)
				return
			}
			require.Equal(t, tc.output, *got.Response.Usage.OutputTokens)
		})
	}
}

func TestStreamFails(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		want   llm.Outcome
	}{
		"a flat error":                    {[]string{`{"object":"error","message":"x","type":"BadRequestError","code":400}`}, llm.OutcomeInvalidRequest},
		"an error does not heal":          {[]string{`{"error":{"message":"x","code":502}}`, word, finish, done}, llm.OutcomeUnavailable},
		"an event named error":            {[]string{"event: error\ndata: {\"error\":{\"message\":\"x\",\"status_code\":429}}\n\n"}, llm.OutcomeRateLimited},
		"an event named error, in prose":  {[]string{"event: error\ndata: the model is overloaded\n\n"}, llm.OutcomeOverloaded},
		"llama.cpp's error field":         {[]string{"error: {\"code\":400,\"message\":\"x\",\"type\":\"exceed_context_size_error\"}\n\n"}, llm.OutcomeContextLength},
		"a finish reason that is a fault": {[]string{`{"choices":[{"delta":{},"finish_reason":"error"}]}`}, llm.OutcomeUnavailable},
		"no resources":                    {[]string{`{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`}, llm.OutcomeOverloaded},
		"a chunk that is no JSON":         {[]string{`{"choices":`}, llm.OutcomeUnavailable},
		"comments and nothing else":       {[]string{": ping\n\n"}, llm.OutcomeUnavailable},
		"nothing but thinking":            {[]string{`{"choices":[{"delta":{"reasoning":"hm"}}]}`, finish}, llm.OutcomeInvalidOutput},
		"a well-formed empty stream":      {[]string{finish, done}, llm.OutcomeInvalidOutput},
		"a refusal":                       {[]string{`{"choices":[{"delta":{"refusal":"no"}}]}`, finish}, llm.OutcomeContentFiltered},
	} {
		t.Run(name, func(t *testing.T) {
			got := stream(t, openai.APIChat, "", tc.events...)
			require.NotNil(t, got.Failure)
			require.Equal(t, tc.want, got.Failure.Outcome)
		})
	}
}

// A caller who leaves while only the usage is missing gets no answer, but its cost.
func TestACallerMayLeaveBetweenTheFinishReasonAndTheEnd(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	data := "data: " + strings.Join([]string{word, finish, usage}, "\n\ndata: ") + "\n\n"
	p, err := openai.New(openai.Config{BaseURL: vectors.Serve(t, &vectors.Upstream{Status: 200, Fault: "stall", Chunks: []vectors.Chunk{{Data: data}}}).URL})
	require.NoError(t, err)
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for frame, err := range p.Stream(ctx, &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}) {
		require.NotEqual(t, llm.FrameEnd, frame.Type)
		cancel()
		last = err
	}
	require.Equal(t, llm.OutcomeCancelled, provider.AsFailure(last).Outcome)
	require.EqualValues(t, 4, *provider.AsFailure(last).Usage.OutputTokens)
}

func TestAnEmptyAnswerCutByItsLimitSaysSo(t *testing.T) {
	got := stream(t, openai.APIChat, "", `{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
	require.Equal(t, llm.OutcomeInvalidOutput, got.Failure.Outcome)
	require.Equal(t, provider.DetailLengthCut, got.Failure.Detail)
	require.EqualValues(t, 4, *got.Failure.Usage.OutputTokens)
}

func TestToolCallsAreAssembled(t *testing.T) {
	delta := func(calls string) string { return `{"choices":[{"delta":{"tool_calls":[` + calls + `]}}]}` }
	a, b := llm.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}, llm.ToolCall{ID: "b", Name: "g", Arguments: `{}`}
	for name, tc := range map[string]struct {
		deltas []string
		want   []llm.ToolCall
	}{
		"by index, interleaved": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g"}}`),
			delta(`{"index":1,"function":{"arguments":"{"}},{"index":0,"function":{"arguments":"{\"x\":"}}`),
			delta(`{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":"}"}}`),
		}, []llm.ToolCall{a, b}},
		"null and empty change nothing": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			delta(`{"index":0,"id":null,"function":{"name":null,"arguments":":1"}}`), delta(`{"index":0,"id":"","function":{"name":"","arguments":"}"}}`),
		}, []llm.ToolCall{a}},
		"repetitions are not joined": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), delta(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
		}, []llm.ToolCall{a}},
		"one index for all, whole": {[]string{
			delta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), delta(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`),
		}, []llm.ToolCall{a, b}},
		"no index": {[]string{
			delta(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), delta(`{"function":{"arguments":"1}"}}`),
			delta(`{"id":"b","function":{"name":"g","arguments":"{}"}}`),
		}, []llm.ToolCall{a, b}},
		"no index, ids on every piece": {[]string{
			delta(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}},{"id":"b","function":{"name":"g","arguments":"{"}}`),
			delta(`{"id":"a","function":{"arguments":"1}"}},{"id":"b","function":{"arguments":"}"}}`),
		}, []llm.ToolCall{a, b}},
		"neither index nor id, the same function": {[]string{
			delta(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`), delta(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`),
		}, []llm.ToolCall{{Name: "f", Arguments: a.Arguments}, {Name: "f", Arguments: a.Arguments}}},
		"the name comes late": {[]string{
			delta(`{"index":0,"id":"a"}`), delta(`{"index":0,"function":{"arguments":"{\"x\""}}`), delta(`{"index":0,"function":{"name":"f","arguments":":1}"}}`),
		}, []llm.ToolCall{a}},
		"the name never comes":           {[]string{delta(`{"index":0,"id":"a","function":{"arguments":"{}"}}`)}, []llm.ToolCall{{ID: "a", Arguments: "{}"}}},
		"arguments as an object":         {[]string{delta(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`)}, []llm.ToolCall{a}},
		"gaps between indices":           {[]string{delta(`{"index":7,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), delta(`{"index":9,"id":"b","function":{"name":"g"}}`)}, []llm.ToolCall{a, b}},
		"whole calls in a message":       {[]string{`{"choices":[{"message":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"index":0,"id":"b","function":{"name":"g","arguments":""}}]}}]}`}, []llm.ToolCall{a, b}},
		"a call before there were tools": {[]string{`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{\"x\""}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":":1}"}}}]}`}, []llm.ToolCall{{Name: "f", Arguments: a.Arguments}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := stream(t, openai.APIChat, "", append(tc.deltas, finish)...)
			require.NotNil(t, got.Response, "%v", got.Failure)
			require.Equal(t, llm.FinishToolCalls, got.Response.FinishReason)
			calls := got.Response.ToolCalls
			require.Len(t, calls, len(tc.want))
			for i := range calls {
				require.NotEmpty(t, calls[i].ID)
				if tc.want[i].ID == "" {
					tc.want[i].ID = calls[i].ID
				}
			}
			require.Equal(t, tc.want, calls)
		})
	}
}

func TestResponsesStream(t *testing.T) {
	call := `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`
	piece := `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"x\":1}"}`
	completed := `{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}],"usage":{"input_tokens":3,"output_tokens":4}}}`
	for name, events := range map[string][]string{"in pieces": {call, piece, completed}, "only at the end": {completed}} {
		t.Run(name, func(t *testing.T) {
			got := stream(t, openai.APIResponses, "stall", events...)
			require.NotNil(t, got.Response, "%v", got.Failure)
			require.Equal(t, []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, got.Response.ToolCalls)
			require.Equal(t, llm.FinishToolCalls, got.Response.FinishReason)
			require.EqualValues(t, 4, *got.Response.Usage.OutputTokens)
		})
	}
	text := `{"type":"response.output_text.delta","delta":"hi"}`
	for name, tc := range map[string]struct {
		events []string
		want   llm.Outcome
	}{
		"failed by its rate":   {[]string{`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}}`}, llm.OutcomeRateLimited},
		"failed for no reason": {[]string{`{"type":"response.failed","response":{"status":"failed","error":null}}`}, llm.OutcomeUnavailable},
		"a flat error":         {[]string{`{"type":"error","code":"server_error","message":"x"}`}, llm.OutcomeUnavailable},
		"a nested error":       {[]string{`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded"}}`}, llm.OutcomeContextLength},
		"a refusal":            {[]string{`{"type":"response.refusal.delta","delta":"no"}`, `{"type":"response.completed","response":{"status":"completed"}}`}, llm.OutcomeContentFiltered},
		"filtered":             {[]string{text, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`}, llm.OutcomeContentFiltered},
		"cut":                  {[]string{text}, llm.OutcomeInterrupted},
		"still queued":         {[]string{`{"type":"response.completed","response":{"status":"queued"}}`}, llm.OutcomeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			got := stream(t, openai.APIResponses, "", tc.events...)
			require.NotNil(t, got.Failure)
			require.Equal(t, tc.want, got.Class())
		})
	}
}
