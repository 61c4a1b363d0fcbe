package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/gateway"
)

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"model":"support","messages":[{"role":"user","content":"` + strings.Repeat("some words of a prompt, ", 340) + `"}],"stream":true}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := gateway.DecodeChat(body)
		require.NoError(b, err)
	}
}
