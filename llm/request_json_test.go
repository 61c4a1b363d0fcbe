package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// sameRequest demands that both ways to write a request say the same.
func sameRequest(t *testing.T, req *llm.Request) {
	t.Helper()
	want, err := json.Marshal(req)
	require.NoError(t, err)
	got, err := req.AppendJSON([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, byte('x'), got[0])
	require.JSONEq(t, string(want), string(got[1:]))
}

func TestRequestsAreWrittenAlike(t *testing.T) {
	for name, value := range goldens() {
		if req, ok := value.(*llm.Request); ok {
			t.Run(name, func(t *testing.T) { sameRequest(t, req) })
		}
	}
	sameRequest(t, &llm.Request{})
	sameRequest(t, &llm.Request{MaxTokens: 3})
	sameRequest(t, &llm.Request{Messages: []llm.Message{{Role: "user"}, {Role: "tool", Content: llm.Text("<&>\u2028\"\n\x00\xff"), ToolCallID: "c"}}})
	_, err := (&llm.Request{Metadata: json.RawMessage("{"), Messages: []llm.Message{{Role: "user", Content: llm.Text("x")}}}).AppendJSON(nil)
	require.Error(t, err)
}

func BenchmarkRequestAppendJSON(b *testing.B) {
	req := &llm.Request{Stream: true, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(strings.Repeat("some words of a prompt, ", 340))}}}
	b.ReportAllocs()
	for b.Loop() {
		_, err := req.AppendJSON(nil)
		require.NoError(b, err)
	}
}
