package gemini

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
)

func TestPlain(t *testing.T) {
	const candidate = `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}]`
	for data, want := range map[string]bool{
		piece: true,
		candidate + `,"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"totalTokenCount":6,"promptTokensDetails":[{}]},"modelVersion":"v","responseId":"r"}`: true,
		candidate + `,"modelVersion":"w"}`:                                                            false,
		candidate + `,"responseId":"s"}`:                                                              false,
		candidate + `,"promptFeedback":{}}`:                                                           false,
		candidate + `,"error":null}`:                                                                  false,
		candidate + `,"usageMetadata":{"promptTokenCount":5.5}}`:                                      false,
		candidate + `,"usageMetadata":{"later":1}}`:                                                   false,
		candidate + `,"candidates":[]}`:                                                               false,
		`{"candidates":[{"content":{"parts":[{"text":"hi","thought":true}]}}]}`:                       false,
		`{"candidates":[{"content":{"parts":[{"text":"hi"},{"text":"ho"}]}}]}`:                        false,
		`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`:                false,
		`{"candidates":[{"content":{"parts":[{"text":"hi"}]}},{"content":{"parts":[]}}]}`:             false,
		`{"candidates":[{"content":{"parts":[{"text":""}]}}],"usageMetadata":{"promptTokenCount":5}}`: false,
	} {
		var f scan.Form
		text, ok := f.Text([]byte(data), (&reader{model: "v", id: "r", usage: new(usage)}).plain)
		require.Equal(t, want, ok, data)
		if ok {
			require.Equal(t, "hi", scan.Unquote(text))
		}
	}
}

func FuzzPlain(f *testing.F) {
	const first = `{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":5},"modelVersion":"v","responseId":"r"}`
	providertest.FuzzPlain(f, func(body string) llm.Completer { return answering(body) }, func(piece string) string { return events(piece) },
		first, piece, stop, first,
		`{"candidates":[{"content":{"parts":[{"text":"\"\u00e9"}]}}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"totalTokenCount":8}}`,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":null},"usageMetadata":{"thoughtsTokenCount":2}}`, ending("STOP"))
}
