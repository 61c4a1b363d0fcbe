package ollama

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/providertest"
)

func TestPlain(t *testing.T) {
	for data, want := range map[string]bool{
		piece: true,
		`{"model":"m","created_at":"2026-01-02T03:04:05Z","message":{"role":"assistant","content":"hi","thinking":"","tool_calls":null},"done":false}`: true,
		`{"message":{"content":"hi"}}`:                                    true,
		`{"model":"other","message":{"content":"hi"},"done":false}`:       false,
		`{"message":{"content":"hi"},"done":true}`:                        false,
		`{"message":{"content":"hi"},"error":"x"}`:                        false,
		`{"message":{"content":"hi","thinking":"hm"},"done":false}`:       false,
		`{"message":{"content":"hi","tool_calls":[]},"done":false}`:       false,
		`{"message":{"content":""},"done":false}`:                         false,
		`{"message":{"content":"hi"},"done":false,"prompt_eval_count":1}`: false,
	} {
		var f scan.Form
		text, ok := f.Text([]byte(data), (&reader{model: "m"}).plain)
		require.Equal(t, want, ok, data)
		if ok {
			require.Equal(t, "hi", scan.Unquote(text))
		}
	}
}

func FuzzPlain(f *testing.F) {
	providertest.FuzzPlain(f, func(body string) llm.Completer { return answering(body) }, func(piece string) string { return piece + "\n" },
		`{"model":"m","message":{"content":"x"}}`, piece[:len(piece)-1], end[:len(end)-1],
		`{"model":"m","created_at":"y","message":{"role":"assistant","content":"\"\u00e9"},"done":false}`,
		`{"model":"n","created_at":7,"message":{"content":"a"},"message":{"content":""}}`, `{"message":{"content":"hi"},"done":true}`)
}
