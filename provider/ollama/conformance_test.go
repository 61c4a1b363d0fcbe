package ollama

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
	"github.com/stretchr/testify/require"
)

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Adapter{
		New: func(t testing.TB, url string) llm.Completer {
			p, err := New(Config{BaseURL: url, APIKey: providertest.Key})
			require.NoError(t, err)
			t.Cleanup(p.Close)
			return p
		},
		Answer: `{"model":"m","message":{"role":"assistant","content":"a breaker"},"done":true,"done_reason":"stop"}`,
		Stream: []string{
			`{"model":"m","message":{"role":"assistant","content":"a "},"done":false}` + "\n",
			`{"model":"m","message":{"role":"assistant","content":"brea"},"done":false}` + "\n",
			`{"model":"m","message":{"role":"assistant","content":"ker"},"done":false}` + "\n",
			`{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":2}` + "\n",
		},
		Media: "application/x-ndjson",
		Text:  "a breaker",
		Error: func(message string) string { return fmt.Sprintf(`{"error":%s}`, strconv.Quote(message)) },
	})
}
