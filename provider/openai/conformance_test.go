package openai_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/openai"
	"github.com/llmbus/llmbus/provider/providertest"
)

func TestConformance(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		providertest.Run(t, providertest.Adapter{
			New:    dial(openai.APIChat),
			Answer: `{"model":"m","choices":[{"index":0,"message":{"content":"a breaker"},"finish_reason":"stop"}]}`,
			Stream: []string{
				"data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n", "data: {\"choices\":[{\"delta\":{\"content\":\"breaker\"}}]}\n\n",
				"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", "data: [DONE]\n\n",
			},
			Media: "text/event-stream", Text: "a breaker", Error: errorBody,
		})
	})
	t.Run("responses", func(t *testing.T) {
		const output = `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a breaker"}]}]}`
		providertest.Run(t, providertest.Adapter{
			New:    dial(openai.APIResponses),
			Answer: output,
			Stream: []string{
				"data: {\"type\":\"response.output_text.delta\",\"delta\":\"a \"}\n\n",
				"data: {\"type\":\"response.output_text.delta\",\"delta\":\"breaker\"}\n\n",
				"data: {\"type\":\"response.completed\",\"response\":" + output + "}\n\n",
			},
			Media: "text/event-stream", Text: "a breaker", Error: errorBody,
		})
	})
}

func dial(api openai.API) func(testing.TB, string) llm.Completer {
	return func(t testing.TB, url string) llm.Completer {
		p, err := openai.New(openai.Config{BaseURL: url, APIKey: providertest.Key, API: api})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		return p
	}
}

func errorBody(message string) string {
	return fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","code":%s}}`, strconv.Quote(message), strconv.Quote(message))
}
