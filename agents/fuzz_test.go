package agents

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// FuzzDecode checks that a prompt is either a text that can be asked or refused
// as invalid_request.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"hello", "", " \n", "{", `{"prompt":"a"}`, `{"prompt":7}`, `{"prompt":"a","attachments":[1]}`, "\xff", `{"PROMPT":"a"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		text, refused := decode(payload)
		if refused != nil {
			require.Empty(t, text)
			require.Equal(t, llm.CodeInvalidRequest, refused.Code)
			require.NotContains(t, refused.Error(), "\n", "it goes into a header")
			return
		}
		require.NotEmpty(t, text)
		require.True(t, utf8.ValidString(text))
	})
}
