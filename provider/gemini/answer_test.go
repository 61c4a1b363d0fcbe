package gemini

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
	p := &Provider{models: "http://x.test/"}
	p.Adapter = wire.NewAdapter(wire.Config{Transport: providertest.Body(body)}, wire.API{Call: p.call, Read: read})
	return p
}

const (
	piece = `{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}`
	stop  = `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`
	busy  = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
)

func events(data ...string) string {
	return "data: " + strings.Join(data, "\r\n\r\ndata: ") + "\r\n\r\n"
}

func ending(reason string) string { return `{"candidates":[{"finishReason":"` + reason + `"}]}` }

func TestStreamQuirks(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want llm.Outcome
	}{
		"usage after the finish":      {events(piece, ending("STOP"), `{"usageMetadata":{"promptTokenCount":5}}`), llm.OutcomeOK},
		"an error after the finish":   {events(piece, stop, busy), llm.OutcomeOK},
		"DONE":                        {events(piece, stop, "[DONE]"), llm.OutcomeOK},
		"no last blank line":          {"data: " + piece + "\n\ndata: " + stop, llm.OutcomeOK},
		"parts of unknown kinds":      {events(`{"candidates":[{"content":{"parts":[{"later":1},{"text":"hi"}]}}]}`, stop), llm.OutcomeOK},
		"an unknown reason":           {events(piece, ending("LATER")), llm.OutcomeOK},
		"a pretty array":              {"[\n" + strings.ReplaceAll(piece, ":", " :\n") + "\n,\n" + stop + "\n]\n", llm.OutcomeOK},
		"an array, not closed":        {"[" + piece + "," + stop, llm.OutcomeOK},
		"an array that is cut":        {"[" + piece + "," + stop[:20], llm.OutcomeInterrupted},
		"an error in an array":        {"[" + piece + "," + busy + "]", llm.OutcomeInterrupted},
		"an error alone in an array":  {"[" + busy + "]", llm.OutcomeOverloaded},
		"a JSON error, not framed":    {busy, llm.OutcomeOverloaded},
		"a raw error among events":    {events(piece) + busy + "\n", llm.OutcomeInterrupted},
		"a raw error first":           {"\r\n" + busy + "\n", llm.OutcomeOverloaded},
		"an event with an error list": {events("[" + busy + "]"), llm.OutcomeOverloaded},
		"a whole answer, not framed":  {`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`, llm.OutcomeOK},
		"thoughts and no end":         {events(`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`), llm.OutcomeUnavailable},
		"broken JSON":                 {events(piece, `{"candidates":`), llm.OutcomeInterrupted},
		"the prompt is blocked":       {events(`{"promptFeedback":{"blockReason":"SAFETY"}}`), llm.OutcomeContentFiltered},
		"a page":                      {"<!doctype html>", llm.OutcomeUnavailable},
		"nothing":                     {"", llm.OutcomeUnavailable},
		"one empty text":              {events(`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}`), llm.OutcomeInvalidOutput},
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

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]struct {
		outcome llm.Outcome
		detail  provider.Detail
	}{
		"SAFETY":                  {llm.OutcomeContentFiltered, ""},
		"SPII":                    {llm.OutcomeContentFiltered, ""},
		"IMAGE_SAFETY":            {llm.OutcomeContentFiltered, ""},
		"RECITATION":              {llm.OutcomeContentFiltered, provider.DetailRecitation},
		"UNEXPECTED_TOOL_CALL":    {llm.OutcomeInvalidOutput, ""},
		"MALFORMED_FUNCTION_CALL": {llm.OutcomeInvalidOutput, ""},
		"TOO_MANY_TOOL_CALLS":     {llm.OutcomeInvalidOutput, ""},
		"OTHER":                   {llm.OutcomeInvalidOutput, ""},
		"STOP":                    {llm.OutcomeInvalidOutput, ""},
		"MAX_TOKENS":              {llm.OutcomeInvalidOutput, provider.DetailLengthCut},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(reason, func(t *testing.T) {
				got := providertest.Ask(t, answering(ending(reason)), stream)
				require.Equal(t, want.outcome, got.Failure.Outcome)
				require.Equal(t, want.detail, got.Failure.Detail)
				require.Equal(t, reason, got.Failure.Code)
			})
		}
	}
	text := func(reason string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"` + reason + `"}],"responseId":"r1"}`
	}
	for reason, want := range map[string]llm.FinishReason{
		"STOP": llm.FinishStop, "MAX_TOKENS": llm.FinishLength, "LANGUAGE": llm.FinishOther, "": llm.FinishUnknown,
	} {
		got := providertest.Ask(t, answering(text(reason)), false)
		require.Equal(t, want, got.Response.FinishReason)
		require.Equal(t, "r1", got.Response.ProviderRequestID)
	}
}

func TestCompleteQuirks(t *testing.T) {
	for body, want := range map[string]llm.Outcome{
		`{"candidates":[]}`:                          llm.OutcomeInvalidOutput,
		`{"usageMetadata":{"promptTokenCount":5}}`:   llm.OutcomeInvalidOutput,
		`{"unexpected":1}`:                           llm.OutcomeUnavailable,
		`[` + busy + `]`:                             llm.OutcomeOverloaded,
		`{"promptFeedback":{"blockReason":"OTHER"}}`: llm.OutcomeContentFiltered,
		`[]`: llm.OutcomeUnavailable,
		``:   llm.OutcomeUnavailable,
	} {
		t.Run(body, func(t *testing.T) {
			got := providertest.Ask(t, answering(body), false)
			require.Equal(t, want, got.Class())
		})
	}
}

// TestUsage takes the last count of each kind, since they are totals.
func TestUsage(t *testing.T) {
	got := providertest.Ask(t, answering(events(
		`{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"thoughtsTokenCount":7}}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":6,"candidatesTokenCount":2,"toolUsePromptTokenCount":3}}`,
	)), true)
	used := got.Response.Usage
	require.EqualValues(t, 9, *used.InputTokens)
	require.EqualValues(t, 9, *used.OutputTokens)
	require.EqualValues(t, 7, *used.ReasoningTokens)
	require.Nil(t, used.CachedInputTokens)
}

func FuzzAnswer(f *testing.F) {
	providertest.Seed(f, "../../chain/testdata/vectors", func(v *vectors.Vector) bool { return v.Provider == "gemini" })
	f.Fuzz(func(t *testing.T, body string, stream bool) { providertest.Ask(t, answering(body), stream) })
}

func BenchmarkStream(b *testing.B) {
	providertest.Bench(b, answering(providertest.Pieces(events(`{"candidates": [{"content": {"parts": [{"text": " %[1]d"}],"role": "model"},"index": 0}],`+
		`"usageMetadata": {"promptTokenCount": 9,"candidatesTokenCount": %[1]d,"totalTokenCount": %[1]d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 9}]},`+
		`"modelVersion": "gemini-2.5-flash","responseId": "r1"}`))+events(stop)))
}
