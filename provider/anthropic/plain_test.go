package anthropic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
)

func TestPlain(t *testing.T) {
	for data, want := range map[string]bool{
		textEvent: true,
		`{ "delta": {"text": "hi", "type": "text_delta"}, "type": "content_block_delta" }`:               true,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`:               false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"},"new":1}`:     false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi","new":1}}`:     false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","text":"hi"}}`:         false,
		`{"type":"content_block_delta","index":0.5,"delta":{"type":"text_delta","text":"hi"}}`:           false,
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"},"delta":{"text":"ho"}}`: false,
		`{"index":0,"delta":{"type":"text_delta","text":"hi"}}`:                                          false,
	} {
		var f scan.Form
		text, ok := f.Text([]byte(data), plain)
		require.Equal(t, want, ok, data)
		if ok {
			require.Equal(t, "hi", scan.Unquote(text))
		}
	}
}

func FuzzPlain(f *testing.F) {
	providertest.FuzzPlain(f, func(body string) llm.Completer { return answering(body) }, func(piece string) string { return "data: " + piece + "\n\n" },
		`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}`, textEvent, stopEvent,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"\u00e9"}}`,
		`{"type":"content_block_delta","delta":{"text":"a"},"delta":{"type":"text_delta"}}`,
		`{"type":"error","error":{"type":"overloaded_error"}}`)
}
