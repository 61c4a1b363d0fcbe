package providertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// FuzzPlain holds what an adapter reads the short way to what it reads in full:
// a member that nobody knows changes nothing but the way. answering makes an
// adapter whose every answer is this body, frame makes a body's part of a JSON
// text, and the stream begins with first.
func FuzzPlain(f *testing.F, answering func(body string) llm.Completer, frame func(string) string, first string, seeds ...string) {
	f.Helper()
	for i, seed := range seeds {
		f.Add(seed, seeds[(i+1)%len(seeds)])
	}
	f.Fuzz(func(t *testing.T, second, third string) {
		if strings.ContainsAny(second+third, "\r\n") {
			return // would be other pieces
		}
		short := Ask(t, answering(frame(first)+frame(second)+frame(third)), true)
		long := Ask(t, answering(frame(first)+frame(full(second))+frame(full(third))), true)
		require.Equal(t, long.Visible, short.Visible)
		require.Equal(t, withoutIDs(long.Response), withoutIDs(short.Response))
	})
}

// full makes a piece that must be read in full.
func full(piece string) string {
	if rest, ok := strings.CutPrefix(piece, "{"); ok {
		piece = `{"":[],` + rest
		if strings.HasPrefix(strings.TrimSpace(rest), "}") {
			piece = `{"":[]` + rest
		}
	}
	return piece
}

// withoutIDs drops what may have been made at random.
func withoutIDs(r *llm.Response) *llm.Response {
	for i := 0; r != nil && i < len(r.ToolCalls); i++ {
		r.ToolCalls[i].ID = ""
	}
	return r
}
