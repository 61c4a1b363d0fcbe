package limits_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/subjects"
)

// The slots of a worker that dies are free a few seconds later, and not before:
// its calls may go on.
func TestSlotsOfADeadWorkerComeBack(t *testing.T) {
	inBubble(t, 3, every(atOnce(10)), func(t *testing.T, f *fleet) {
		require.Equal(t, 10, count(t, f.workers[0], chain.Use{}))
		f.workers[0].kill()
		natstest.Advance(3 * time.Second)
		require.Zero(t, count(t, f.workers[1], chain.Use{}))
		natstest.Advance(3 * time.Second)
		_, err := f.workers[1].ask(t.Context(), chain.Use{}) // who was refused before
		require.NoError(t, err)
		grants, _ := f.parallelAt(t, 50, chain.Use{}, 1, 2)
		require.Len(t, grants, 9)
	})
}

// A worker that has just come has heard nobody yet, and takes nobody for dead.
func TestANewWorkerTakesNobodyForDead(t *testing.T) {
	p := every(atOnce(10))
	inBubble(t, 1, p, func(t *testing.T, f *fleet) {
		require.Equal(t, 10, count(t, f.workers[0], chain.Use{}))
		w := f.add(t, natstest.Connect(t, f.server), p)
		natstest.Advance(10 * time.Second)
		require.Zero(t, count(t, w, chain.Use{}))
	})
}

// What a dead worker had leased of a window is lost with it, and no more than
// that.
func TestLeasesOfADeadWorker(t *testing.T) {
	inBubble(t, 2, every(requests(6400)), func(t *testing.T, f *fleet) {
		_, err := f.workers[0].ask(t.Context(), chain.Use{})
		require.NoError(t, err)
		f.workers[0].kill()
		require.Equal(t, 6300, count(t, f.workers[1], chain.Use{}))
	})
}

// While JetStream is away, each worker admits its share of what was left; when
// it is back, that is booked.
func TestWithoutJetStream(t *testing.T) {
	srv := natstest.ListenServer(t)
	f := &fleet{}
	p := every(limits.Limit{Kind: limits.Requests, Window: limits.Hour, Amount: 1000})
	for range 4 {
		f.add(t, srv.Dial(), p)
	}
	defer f.end()
	acquainted := func(w *worker) bool { return w.Workers() == 4 }
	require.Eventually(t, func() bool { return f.every(acquainted) }, 10*time.Second, 10*millisecond)
	grants, _ := f.parallel(t, 400, chain.Use{})
	require.Len(t, grants, 400)
	require.NoError(t, f.workers[0].conn.Flush(), "all have heard of it")

	srv.Stop()
	lost := func(w *worker) bool { return !w.conn.IsConnected() }
	require.Eventually(t, func() bool { return f.every(lost) }, 10*time.Second, millisecond)
	alone, refused := f.parallel(t, 1000, chain.Use{})
	require.InDelta(t, 600, len(alone), 120, "what was leased, and a share of what was not")
	require.LessOrEqual(t, len(alone), 600+4)
	require.True(t, refused.Degraded)
	require.True(t, f.workers[0].Limiter.Degraded())
	degraded := 0
	for _, g := range alone {
		if g.Degraded() {
			degraded++
		}
	}
	require.NotZero(t, degraded)

	srv.Restart()
	back := func(w *worker) bool { return !w.Limiter.Degraded() }
	require.Eventually(t, func() bool { return f.every(back) }, 15*time.Second, 10*millisecond)
	booked := func() bool { return f.booked(t, srv.Dial()) >= int64(400+len(alone)) }
	require.Eventually(t, booked, 10*time.Second, 50*millisecond)
	rest, refused := f.parallel(t, 400, chain.Use{})
	require.Equal(t, 1000, 400+len(alone)+len(rest))
	require.False(t, refused.Degraded)
}

func TestDeletedCountersBeginAnew(t *testing.T) {
	inBubble(t, 2, every(requests(10)), func(t *testing.T, f *fleet) {
		grants, _ := f.parallel(t, 5, chain.Use{})
		require.Len(t, grants, 5)
		natstest.Advance(millisecond) // all have heard of it
		js, err := jetstream.New(f.workers[0].conn)
		require.NoError(t, err)
		require.NoError(t, js.DeleteStream(t.Context(), subjects.LimitStream("minute")))
		alone, refused := f.parallel(t, 20, chain.Use{})
		require.LessOrEqual(t, len(alone), 6, "(10 - 5) / 2, rounded up, each")
		require.True(t, refused.Degraded)
		natstest.Advance(time.Minute)
		grants, _ = f.parallel(t, 20, chain.Use{})
		require.Len(t, grants, 10)
	})
}

// A stream of that name that does not count is no reason to admit all.
func TestAStreamThatDoesNotCount(t *testing.T) {
	inBubble(t, 2, every(requests(10)), func(t *testing.T, f *fleet) {
		js, err := jetstream.New(f.workers[0].conn)
		require.NoError(t, err)
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: subjects.LimitStream("minute"), Subjects: []string{subjects.LimitCounters("minute")}, Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		alone, refused := f.parallel(t, 50, chain.Use{})
		require.Len(t, alone, 10)
		require.True(t, refused.Degraded)
	})
}

func TestReload(t *testing.T) {
	inBubble(t, 2, every(requests(10)), func(t *testing.T, f *fleet) {
		load := func(p limits.Policy) {
			for _, w := range f.workers {
				require.NoError(t, w.Load(p))
			}
		}
		grants, _ := f.parallel(t, 8, chain.Use{})
		require.Len(t, grants, 8)
		load(every(requests(20)))
		grants, _ = f.parallel(t, 50, chain.Use{})
		require.Len(t, grants, 12, "what was used still counts")
		load(every(requests(5)))
		grants, refused := f.parallel(t, 5, chain.Use{})
		require.Empty(t, grants)
		require.EqualValues(t, 5, refused.Amount)
		load(limits.Policy{})
		g, err := f.workers[0].Admit(t.Context(), request)
		require.NoError(t, err)
		require.Nil(t, g, "no limit")
		require.Error(t, f.workers[0].Load(every(requests(0))))
	})
}

// Limits of a feature hold besides those of the tenant, for each tenant apart.
func TestScopes(t *testing.T) {
	p := limits.Policy{
		Tenants:  limits.Rules{Default: []limits.Limit{requests(10)}, Tenants: map[string][]limits.Limit{"big": {requests(30)}, "free": nil}},
		Features: map[string]limits.Rules{chat: {Default: []limits.Limit{requests(4)}}},
	}
	inBubble(t, 2, p, func(t *testing.T, f *fleet) {
		admitted := func(tenant, feature string) (n int) {
			for i := range 50 {
				r := *request
				r.Tenant, r.Feature = tenant, feature
				if _, err := f.workers[i%2].Admit(t.Context(), &r); err == nil {
					n++
				}
			}
			return n
		}
		require.Equal(t, 4, admitted(acme, chat))
		require.Equal(t, 6, admitted(acme, "other"))
		require.Equal(t, 4, admitted("", chat), "a fleet with one tenant")
		require.Equal(t, 30, admitted("big", "other"))
		require.Equal(t, 50, admitted("free", "other"))
		require.Equal(t, 4, admitted("free", chat))
	})
}
