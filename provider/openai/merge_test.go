package openai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
)

func textEvent(text string) string {
	return "data: " + chunk(`{"index":0,"delta":{"content":"`+text+`"}}`) + "\n\n"
}

// frames plays a stream that arrives in these writes and returns its text frames,
// as far as the reader wants them.
func frames(t *testing.T, u *vectors.Upstream, want int) (texts []string, err error) {
	t.Helper()
	p, err := New(Config{BaseURL: vectors.Serve(t, u).URL})
	require.NoError(t, err)
	defer p.Close()
	req := &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}
	for f, err := range p.Stream(t.Context(), req) {
		if err != nil {
			return texts, err
		}
		if f.Type == llm.FrameDelta {
			texts = append(texts, f.Text)
		}
		if len(texts) == want {
			return texts, nil
		}
	}
	return texts, nil
}

// The provider falls silent with a part of an event, a comment, or a field that
// makes no event behind the text: a frame that waited for more would never come.
func TestNoPieceWaitsForOneThatIsNotThere(t *testing.T) {
	for _, rest := range []string{"", textEvent("b")[:40], "data: x\n", ": ping\n\n", "event: ping\n\n", "\n", "data", "\r", "data: \n\n"} {
		texts, err := frames(t, &vectors.Upstream{Status: 200, Fault: "stall", Chunks: []vectors.Chunk{{Data: textEvent("a") + rest}}}, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, texts, "%q", rest)
	}
}

// A chunk that looks like the one before it is read as it would be alone.
func FuzzPattern(f *testing.F) {
	first := chunk(`{"index":0,"delta":{"content":"hi"}}`)
	f.Add([]byte(first), []byte(chunk(`{"index":0,"delta":{"content":"m"}}`)))
	f.Add([]byte(first), []byte(chunk(`{"index":0,"delta":{"content":"a\",\"b"}}`)))
	f.Add([]byte(first), []byte(chunk(`{"index":0,"delta":{"content":"a","b":"c"}}`)))
	f.Add([]byte(first), []byte(chunk(`{"index":0,"delta":{"content":""}}`)))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var p pattern
		p.text(first)
		text, ok := p.text(second)
		want, plain := plainDelta(second)
		require.Equal(t, plain, ok)
		require.Equal(t, string(want), string(text))
	})
}
