package limits_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/limits"
)

// count admits requests at one worker until it refuses one.
func count(t *testing.T, w *worker, u chain.Use) (n int) {
	t.Helper()
	for {
		if _, err := w.ask(t.Context(), u); err != nil {
			exceeded(t, err)
			return n
		}
		n++
	}
}

func TestWhatIsLeasedAndNotUsedComesBack(t *testing.T) {
	for _, limit := range []limits.Limit{requests(6400), tokens(6400), atOnce(6400)} {
		t.Run(limit.Name(), func(t *testing.T) {
			inBubble(t, 3, every(limit), func(t *testing.T, f *fleet) {
				for _, w := range f.workers[:2] {
					_, err := w.ask(t.Context(), chain.Use{Tokens: 1})
					require.NoError(t, err)
				}
				natstest.Advance(2500 * millisecond) // two sweeps
				for _, w := range f.workers[:2] {
					w.conn.Close() // so that nobody can be asked to give back
				}
				require.Equal(t, 6398, count(t, f.workers[2], chain.Use{Tokens: 1}))
			})
		})
	}
}

func TestAWorkerThatEndsGivesBack(t *testing.T) {
	inBubble(t, 2, every(requests(6400)), func(t *testing.T, f *fleet) {
		_, err := f.workers[0].ask(t.Context(), chain.Use{})
		require.NoError(t, err)
		f.workers[0].end()
		require.Equal(t, 6399, count(t, f.workers[1], chain.Use{}))
		got, err := f.workers[0].ask(t.Context(), chain.Use{})
		require.NoError(t, err, "what comes late is admitted as without JetStream")
		require.True(t, got.Degraded())
	})
}

func TestARefusalUsesUpNothing(t *testing.T) {
	for name, tight := range map[string]limits.Limit{"tokens": tokens(1000), "dollars": dollars(1), "slots": atOnce(1)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, every(requests(10), tight), func(t *testing.T, f *fleet) {
				whole := chain.Use{Tokens: 1000, USD: 1}
				first, err := f.workers[0].ask(t.Context(), whole)
				require.NoError(t, err)
				for i := range 50 {
					_, err := f.workers[i%2].ask(t.Context(), whole)
					require.Equal(t, tight.Name(), exceeded(t, err).Name())
				}
				first.Settle(chain.Use{})
				natstest.Advance(200 * millisecond)
				for i := range 10 {
					g, err := f.workers[i%2].ask(t.Context(), whole)
					require.NoError(t, err, "request %d", i)
					g.Settle(chain.Use{Calls: 1})
					natstest.Advance(millisecond) // the other worker hears of it
				}
				_, err = f.workers[1].ask(t.Context(), whole)
				require.Equal(t, limits.Requests, exceeded(t, err).Kind)
			})
		})
	}
}

func TestSettling(t *testing.T) {
	for name, tc := range map[string]struct {
		limit          limits.Limit
		reserved, used chain.Use
		want           int // requests until the first is refused
	}{
		"less tokens than reserved":  {tokens(1000), chain.Use{Tokens: 100}, chain.Use{Calls: 1, Tokens: 25}, 37},
		"more tokens than reserved":  {tokens(1000), chain.Use{Tokens: 100}, chain.Use{Calls: 1, Tokens: 150}, 7},
		"no usage":                   {tokens(1000), chain.Use{Tokens: 100}, chain.Use{Calls: 1}, 200},
		"less dollars than reserved": {dollars(1), chain.Use{USD: 0.1}, chain.Use{Calls: 1, USD: 0.05}, 19},
		"requests that made a call":  {requests(30), chain.Use{}, chain.Use{Calls: 2}, 30},
		"requests that made none":    {requests(30), chain.Use{}, chain.Use{}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, every(tc.limit), func(t *testing.T, f *fleet) {
				n := 0
				for ; n < 200; n++ {
					g, err := f.workers[n%2].ask(t.Context(), tc.reserved)
					if err != nil {
						exceeded(t, err)
						break
					}
					g.Settle(tc.used)
					g.Settle(tc.used) // only the first counts
					natstest.Advance(millisecond)
				}
				require.Equal(t, tc.want, n)
			})
		})
	}
}

// A reservation is topped up before each call, and one that cannot be is left as
// it was.
func TestCoverTopsUp(t *testing.T) {
	inBubble(t, 1, every(tokens(1000), dollars(1)), func(t *testing.T, f *fleet) {
		w := f.workers[0]
		g, err := w.ask(t.Context(), chain.Use{Tokens: 300, USD: 0.3})
		require.NoError(t, err)
		require.NoError(t, g.Cover(t.Context(), chain.Use{Tokens: 500, USD: 0.2}))
		require.Equal(t, limits.USD, exceeded(t, g.Cover(t.Context(), chain.Use{Tokens: 900, USD: 1.5})).Kind)
		require.Equal(t, 5, count(t, w, chain.Use{Tokens: 100, USD: 0.1}), "the dearer target's tokens came back")
		g.Settle(chain.Use{Calls: 2, Tokens: 100, USD: 0.1})
		require.Equal(t, 4, count(t, w, chain.Use{Tokens: 100, USD: 0.01}))
	})
}

// A request that may use more than the limit is the only one of its window.
func TestARequestLargerThanTheLimit(t *testing.T) {
	inBubble(t, 2, every(tokens(1000)), func(t *testing.T, f *fleet) {
		g, err := f.workers[0].ask(t.Context(), chain.Use{Tokens: 50_000})
		require.NoError(t, err)
		_, err = f.workers[1].ask(t.Context(), chain.Use{Tokens: 1})
		exceeded(t, err)
		g.Settle(chain.Use{Calls: 1, Tokens: 10})
		natstest.Advance(200 * millisecond)
		_, err = f.workers[1].ask(t.Context(), chain.Use{Tokens: 50_000})
		require.EqualValues(t, 1000, exceeded(t, err).Wanted)
		require.Equal(t, 99, count(t, f.workers[1], chain.Use{Tokens: 10}))
	})
}

// What ends in a later window than it began in gives nothing back to that, and
// what was too little is booked there.
func TestSettlingInALaterWindow(t *testing.T) {
	inBubble(t, 1, every(tokens(1000)), func(t *testing.T, f *fleet) {
		w := f.workers[0]
		long, err := w.ask(t.Context(), chain.Use{Tokens: 900})
		require.NoError(t, err)
		larger, err := w.ask(t.Context(), chain.Use{Tokens: 100})
		require.NoError(t, err)
		natstest.Advance(time.Minute)
		long.Settle(chain.Use{Calls: 1, Tokens: 1})
		larger.Settle(chain.Use{Calls: 1, Tokens: 300})
		natstest.Advance(millisecond)
		require.Equal(t, 8, count(t, w, chain.Use{Tokens: 100}))
	})
}

// Random requests of random length never hold more slots than there are, and
// all slots are to be had at the end.
func TestSlotsUnderRandomLoad(t *testing.T) {
	inBubble(t, 5, every(atOnce(20)), func(t *testing.T, f *fleet) {
		var now, most, admitted atomic.Int64
		var group sync.WaitGroup
		for range 60 {
			group.Go(func() {
				for range 20 {
					g, err := f.workers[rand.IntN(5)].ask(t.Context(), chain.Use{})
					if err != nil {
						<-time.After(rand.N(50 * millisecond))
						continue
					}
					admitted.Add(1)
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					<-time.After(rand.N(300 * millisecond))
					now.Add(-1)
					g.Settle(chain.Use{Calls: 1})
				}
			})
		}
		group.Wait()
		require.EqualValues(t, 20, most.Load())
		natstest.Advance(2500 * millisecond)
		grants, _ := f.parallel(t, 100, chain.Use{})
		require.Len(t, grants, 20)
	})
}

func TestWhoGivesUpWaitingGetsNothing(t *testing.T) {
	inBubble(t, 1, every(requests(10)), func(t *testing.T, f *fleet) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.workers[0].ask(gone, chain.Use{})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 10, count(t, f.workers[0], chain.Use{}))
	})
}
