package anthropic

import (
	"strings"
	"testing"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/providertest"
	"github.com/llmbus/llmbus/provider/wire"
	"github.com/stretchr/testify/require"
)

// answering is a Provider whose every answer is body.
func answering(body string) *Provider {
	p := &Provider{url: "http://x.test", maxTokens: 1}
	p.Adapter = wire.NewAdapter(wire.Config{Transport: providertest.Body(body)}, wire.API{Call: p.call, Read: read})
	return p
}

func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

const (
	textEvent = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
	stopEvent = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`
)

func TestStreamQuirks(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want llm.Outcome
	}{
		"types in the data alone":         {events(textEvent, stopEvent), llm.OutcomeOK},
		"unknown events and deltas":       {events(`{"type":"later"}`, `{"type":"content_block_delta","delta":{"type":"x"}}`, textEvent, stopEvent), llm.OutcomeOK},
		"an error after the stop reason":  {events(textEvent, stopEvent, `{"type":"error","error":{"type":"api_error"}}`), llm.OutcomeOK},
		"DONE ends it, too":               {events(textEvent, "[DONE]"), llm.OutcomeOK},
		"message_stop without a reason":   {events(textEvent, `{"type":"message_stop"}`), llm.OutcomeOK},
		"error without a type":            {events(`{"error":{"type":"rate_limit_error","message":"m"}}`), llm.OutcomeRateLimited},
		"error by its name alone":         {"event: error\ndata: {\"x\":1}\n\n", llm.OutcomeUnavailable},
		"overload under another status":   {events(`{"type":"error","error":{"type":"overloaded_error"}}`), llm.OutcomeOverloaded},
		"broken JSON":                     {events(`{"type":`), llm.OutcomeUnavailable},
		"broken JSON after text":          {events(textEvent, `{"type":`), llm.OutcomeInterrupted},
		"thinking only":                   {events(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}`), llm.OutcomeUnavailable},
		"a page":                          {"<html>", llm.OutcomeUnavailable},
		"nothing":                         {"", llm.OutcomeUnavailable},
		"a refusal without text":          {events(`{"type":"message_delta","delta":{"stop_reason":"refusal"}}`), llm.OutcomeContentFiltered},
		"an empty answer":                 {events(stopEvent), llm.OutcomeInvalidOutput},
		"a JSON error in place of events": {`{"type":"error","error":{"type":"not_found_error","message":"m"}}`, llm.OutcomeNotFound},
		"a whole answer in their place":   {`{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`, llm.OutcomeOK},
	} {
		t.Run(name, func(t *testing.T) {
			got := providertest.Ask(t, answering(c.body), true)
			require.Equal(t, c.want, got.Class())
			if c.want == llm.OutcomeOK {
				require.Equal(t, "hi", got.Response.Content)
			}
		})
	}
}

func TestCompleteQuirks(t *testing.T) {
	for body, want := range map[string]llm.Outcome{
		`{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"later_reason"}`:                      llm.OutcomeOK,
		`{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":null}`:                                llm.OutcomeOK,
		`{"type":"message","content":[{"type":"text","text":""}],"stop_reason":"max_tokens"}`:                          llm.OutcomeInvalidOutput,
		`{"type":"message","content":[],"stop_reason":"pause_turn"}`:                                                   llm.OutcomeInvalidOutput,
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}`:              llm.OutcomeContextLength,
		`{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`: llm.OutcomeQuotaExhausted,
		`{"unexpected":[1]}`: llm.OutcomeUnavailable,
		`[]`:                 llm.OutcomeUnavailable,
		`{`:                  llm.OutcomeUnavailable,
		``:                   llm.OutcomeUnavailable,
	} {
		t.Run(body, func(t *testing.T) {
			got := providertest.Ask(t, answering(body), false)
			require.Equal(t, want, got.Class())
		})
	}
}

func TestArgumentsThatComeWithTheBlock(t *testing.T) {
	got := providertest.Ask(t, answering(events(
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1}}}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"server_tool_use","id":"s","name":"web"}}`,
		`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
	)), true)
	require.Equal(t, []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, got.Response.ToolCalls)
	require.Nil(t, got.Response.Usage, "unknown is not zero")
}

func TestLengthCutSaysSo(t *testing.T) {
	got := providertest.Ask(t, answering(`{"type":"message","content":[],"stop_reason":"model_context_window_exceeded"}`), false)
	require.Equal(t, provider.DetailLengthCut, got.Failure.Detail)
}

func FuzzAnswer(f *testing.F) {
	providertest.Seed(f, "../../chain/testdata/vectors", func(v *vectors.Vector) bool { return v.Provider == "anthropic" })
	f.Fuzz(func(t *testing.T, body string, stream bool) { providertest.Ask(t, answering(body), stream) })
}

func BenchmarkStream(b *testing.B) {
	providertest.Bench(b, answering(
		events(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`)+
			providertest.Pieces("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" %d\"}}\n\n")+
			events(stopEvent, `{"type":"message_stop"}`)))
}
