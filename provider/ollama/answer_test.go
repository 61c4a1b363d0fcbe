package ollama

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
	p := &Provider{url: "http://x.test"}
	p.Adapter = wire.NewAdapter(wire.Config{Transport: providertest.Body(body)}, wire.API{Call: p.call, Read: read})
	return p
}

const (
	piece = `{"model":"m","message":{"role":"assistant","content":"hi"},"done":false}` + "\n"
	end   = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":3}` + "\n"
)

func TestStreamQuirks(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want llm.Outcome
	}{
		"plain":                      {piece + end, llm.OutcomeOK},
		"blank lines and CRLF":       {"\n\r\n" + strings.ReplaceAll(piece+"\n"+end, "\n", "\r\n"), llm.OutcomeOK},
		"text in the last object":    {`{"message":{"content":"hi"},"done":true}`, llm.OutcomeOK},
		"something after the end":    {piece + end + "{broken", llm.OutcomeOK},
		"error field that is null":   {`{"message":{"content":"hi"},"error":null,"done":true}`, llm.OutcomeOK},
		"an error without its field": {`{"llama runner process has terminated":null}`, llm.OutcomeUnavailable},
		"a known error as a key":     {`{"the prompt exceeds the context length":""}`, llm.OutcomeContextLength},
		"a known error":              {`{"error":"server busy, please try again.  maximum pending requests exceeded"}`, llm.OutcomeOverloaded},
		"an error beside a message":  {piece + `{"message":{"content":""},"error":"x"}`, llm.OutcomeInterrupted},
		"no end":                     {piece, llm.OutcomeInterrupted},
		"thinking and no end":        {`{"message":{"content":"","thinking":"hm"}}`, llm.OutcomeUnavailable},
		"cut in an object":           {piece + end[:20], llm.OutcomeInterrupted},
		"loaded, no answer":          {`{"message":{"content":""},"done":true,"done_reason":"load"}`, llm.OutcomeInvalidOutput},
		"an empty answer":            {end, llm.OutcomeInvalidOutput},
		"a page":                     {"<html>", llm.OutcomeUnavailable},
		"a list with an error":       {`[{"error":{"type":"rate_limit_error"}}]`, llm.OutcomeRateLimited},
		"nothing":                    {"", llm.OutcomeUnavailable},
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
		`{"message":{"content":"hi"},"done":true,"done_reason":"stop"}`: llm.OutcomeOK,
		`{"message":{"content":"hi"},"done":false}`:                     llm.OutcomeUnavailable,
		`{"message":{"content":""},"done":true,"done_reason":"length"}`: llm.OutcomeInvalidOutput,
		`{"error":"model requires more system memory (9 GiB) than is"}`: llm.OutcomeUnavailable,
		`{"unexpected":[1],"shape":2}`:                                  llm.OutcomeUnavailable,
		`{"error":"error parsing tool call: raw='{', err=unexpected"}`:  llm.OutcomeInvalidOutput,
		`{"error":"\"m\" does not support thinking"}`:                   llm.OutcomeInvalidRequest,
		`[]`: llm.OutcomeUnavailable,
		``:   llm.OutcomeUnavailable,
	} {
		t.Run(body, func(t *testing.T) {
			got := providertest.Ask(t, answering(body), false)
			require.Equal(t, want, got.Class())
		})
	}
	cut := providertest.Ask(t, answering(`{"done":true,"done_reason":"length","eval_count":9}`), false)
	require.Equal(t, provider.DetailLengthCut, cut.Failure.Detail)
	require.EqualValues(t, 9, *cut.Failure.Usage.OutputTokens)
	require.Nil(t, cut.Failure.Usage.InputTokens, "left out is unknown")
}

func TestToolCallForms(t *testing.T) {
	got := providertest.Ask(t, answering(`{"message":{"content":"","tool_calls":[`+
		`{"function":{"name":"f"}},{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},`+
		`{"id":"x","function":{"name":"g","arguments":{"b":2}}}]},"done":true,"done_reason":"stop"}`), true)
	calls := got.Response.ToolCalls
	require.Len(t, calls, 3)
	require.Equal(t, []string{"{}", `{"a":1}`, `{"b":2}`}, []string{calls[0].Arguments, calls[1].Arguments, calls[2].Arguments})
	require.NotEqual(t, calls[1].ID, calls[2].ID)
	require.Equal(t, llm.FinishToolCalls, got.Response.FinishReason)
	require.Nil(t, got.Response.Usage)
}

func FuzzAnswer(f *testing.F) {
	providertest.Seed(f, "../../chain/testdata/vectors", func(v *vectors.Vector) bool { return v.Provider == "ollama" })
	f.Fuzz(func(t *testing.T, body string, stream bool) { providertest.Ask(t, answering(body), stream) })
}

func BenchmarkStream(b *testing.B) {
	providertest.Bench(b, answering(providertest.Pieces(`{"model":"m","created_at":"2026-01-02T03:04:05.%[1]d456789Z",`+
		`"message":{"role":"assistant","content":" %[1]d"},"done":false}`+"\n")+end))
}
