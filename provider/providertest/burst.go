package providertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

const burst = 200

// Pieces is the part of a stream that brings the text, in the form of one piece:
// what it has for %d rises from piece to piece.
func Pieces(piece string) string {
	var all strings.Builder
	for i := range burst {
		fmt.Fprintf(&all, piece, 100+i)
	}
	return all.String()
}

// Bench measures a stream of Pieces that all come at once.
func Bench(b *testing.B, c llm.Completer) {
	b.ReportAllocs()
	for b.Loop() {
		size := 0
		for frame, err := range c.Stream(b.Context(), ask()) {
			if size += len(frame.Text); err != nil {
				b.Fatal(err)
			}
		}
		require.GreaterOrEqual(b, size, burst)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst), "ns/token")
}
