package providertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
)

// atOnce plays a stream in one write.
func (a *Adapter) atOnce(data, fault string) *vectors.Upstream {
	return &vectors.Upstream{Status: 200, Headers: map[string]string{"Content-Type": a.Media}, Chunks: []vectors.Chunk{{Data: data}}, Fault: fault}
}

func (a *Adapter) merges(t *testing.T) {
	c, _ := a.start(t, a.atOnce(strings.Join(a.Stream, ""), ""))
	got := play(t.Context(), c, ask())
	require.NoError(t, got.err)
	require.Equal(t, a.Text, got.text)
	require.Equal(t, 1, got.deltas)
}

// neverWaits lets the provider fall silent, or send nonsense, within the piece
// after a text: a frame that waited for more of it would never come.
func (a *Adapter) neverWaits(t *testing.T) {
	for n, next := range a.Stream {
		before := strings.Join(a.Stream[:n], "")
		c, _ := a.start(t, a.atOnce(before, "truncate"))
		cut := play(t.Context(), c, ask())
		if cut.text == "" || cut.err == nil {
			continue
		}
		c, _ = a.start(t, a.atOnce(before+"{broken\n\n", ""))
		broken := play(t.Context(), c, ask())
		require.Error(t, broken.err)
		require.Equal(t, cut.text, broken.text)
		for _, part := range []int{0, 1, len(next) / 2, len(next) - 1} {
			c, _ := a.start(t, a.atOnce(before+next[:part], "stall"))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			require.True(t, shows(ctx, c, cut.text), "%d bytes of %q", part, next)
			cancel()
		}
	}
}

// shows reports whether the frames of a stream show a text before it fails.
func shows(ctx context.Context, c llm.Completer, want string) bool {
	var got strings.Builder
	for frame, err := range c.Stream(ctx, ask()) {
		if err != nil {
			return false
		}
		if got.WriteString(frame.Text); strings.HasPrefix(got.String(), want) {
			return true
		}
	}
	return false
}
