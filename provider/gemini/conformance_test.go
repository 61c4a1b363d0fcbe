package gemini

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
	"github.com/stretchr/testify/require"
)

func TestConformance(t *testing.T) {
	chunk := func(text, rest string) string {
		return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%q}],"role":"model"}%s}],"modelVersion":"m"}`, text, rest)
	}
	last := chunk("ker", `,"finishReason":"STOP"`)
	for form, stream := range map[string][]string{
		"events": {
			"data: " + chunk("a ", "") + "\r\n\r\n", "data: " + chunk("br", "") + "\r\n\r\n",
			"data: " + chunk("ea", "") + "\r\n\r\n", "data: " + last + "\r\n\r\n",
		},
		"array": {"[" + chunk("a ", "") + "\n,", chunk("br", "") + "\n,\r\n", chunk("ea", "") + ",", last + "\n]"},
	} {
		t.Run(form, func(t *testing.T) {
			providertest.Run(t, providertest.Adapter{
				New: func(t testing.TB, url string) llm.Completer {
					p, err := New(Config{BaseURL: url, APIKey: providertest.Key})
					require.NoError(t, err)
					t.Cleanup(p.Close)
					return p
				},
				Answer: chunk("a breaker", `,"finishReason":"STOP"`),
				Stream: stream,
				Media:  "text/event-stream",
				Text:   "a breaker",
				Error: func(message string) string {
					return fmt.Sprintf(`{"error":{"code":400,"status":"STRANGE","message":%s}}`, strconv.Quote(message))
				},
			})
		})
	}
}
