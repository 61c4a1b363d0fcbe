package limits_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/limits"
)

const millisecond = time.Millisecond

var (
	requests = func(n int64) limits.Limit {
		return limits.Limit{Kind: limits.Requests, Window: limits.Minute, Amount: n}
	}
	tokens  = func(n int64) limits.Limit { return limits.Limit{Kind: limits.Tokens, Window: limits.Minute, Amount: n} }
	dollars = func(usd float64) limits.Limit {
		return limits.Limit{Kind: limits.USD, Window: limits.Minute, Amount: int64(usd * limits.NanoUSD)}
	}
	atOnce = func(n int64) limits.Limit { return limits.Limit{Kind: limits.Concurrent, Amount: n} }
)

// What the fleet admits is the limit, whichever workers the callers meet and
// whatever is leased where.
func TestParallelCallersAtTheEdge(t *testing.T) {
	for name, tc := range map[string]struct {
		limit limits.Limit
		use   chain.Use
		want  int
	}{
		"requests":            {requests(50), chain.Use{}, 50},
		"requests, one left":  {requests(1), chain.Use{}, 1},
		"requests, in blocks": {requests(6400), chain.Use{}, 6400},
		"concurrent":          {atOnce(50), chain.Use{}, 50},
		"tokens":              {tokens(10_000), chain.Use{Tokens: 190}, 52},
		"dollars":             {dollars(0.5), chain.Use{USD: 0.011}, 45},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 5, every(tc.limit), func(t *testing.T, f *fleet) {
				grants, refused := f.parallel(t, tc.want+50, tc.use)
				require.Len(t, grants, tc.want)
				require.Equal(t, tc.limit, refused.Limit)
				require.False(t, refused.Degraded)
				require.Positive(t, refused.RetryAfter)
				if tc.limit.Kind == limits.Concurrent {
					return
				}
				require.LessOrEqual(t, refused.RetryAfter, tc.limit.Window.Length())
				natstest.Advance(refused.RetryAfter)
				again, _ := f.parallel(t, tc.want+50, tc.use)
				require.Len(t, again, tc.want, "the next window is a new one")
			})
		})
	}
}
