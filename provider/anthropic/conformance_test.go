package anthropic

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
		Answer: `{"type":"message","model":"m","content":[{"type":"text","text":"a breaker"}],"stop_reason":"end_turn"}`,
		Stream: []string{
			`data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a "}}` + "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"breaker"}}` + "\n\n",
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n",
		},
		Media: "text/event-stream",
		Text:  "a breaker",
		Error: func(message string) string {
			return fmt.Sprintf(`{"type":"error","error":{"type":"strange_error","message":%s},"request_id":"r1"}`, strconv.Quote(message))
		},
	})
}
