package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/subjects"
)

func TestDeletedKeyIsAReset(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		for range 2 {
			f.fail(0)
			require.NoError(t, f.buckets.Breakers.Delete(t.Context(), key, 0))
			synctest.Wait()
			for _, b := range f.breakers {
				require.True(t, b.Ready())
			}
			f.fail(1) // creates the key again, over the marker
			f.settled(breaker.Open)
			require.NoError(t, f.buckets.Breakers.Delete(t.Context(), key, 0))
			synctest.Wait()
		}
	})
}

func TestResetVoidsTheProbe(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.fail(0)
		p := f.probe(0)
		require.NoError(t, f.buckets.Breakers.Delete(t.Context(), key, 0))
		synctest.Wait()
		p.Done(t.Context(), breaker.Result{Kind: breaker.Failure, Why: "timeout"})
		synctest.Wait()
		for _, b := range f.breakers {
			require.True(t, b.Ready())
		}
		f.fail(1)
		f.probe(1) // the void probe's lease was given back
	})
}

func TestValueByHandIsObeyed(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.put(`{"state":"open","why":"incident","cool_down_ms":600000}`)
		for _, g := range f.groups {
			s := g.Snapshot()[0]
			require.Equal(t, breaker.Open, s.State)
			require.Equal(t, "incident", s.Why)
			require.GreaterOrEqual(t, s.RetryMS, int64(600_000))
		}
		f.put(`{"state":"closed"}`)
		for _, b := range f.breakers {
			require.True(t, b.Ready())
		}
		f.fail(0)
		f.settled(breaker.Open)
	})
}

func TestMalformedValueChangesNothing(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 2, breaker.Settings{Threshold: 1})
		f.put("open please")
		for _, b := range f.breakers {
			require.True(t, b.Ready())
		}
		f.fail(0)
		f.settled(breaker.Open)
		f.put(`{"state":"ajar"}`)
		for _, g := range f.groups {
			require.Equal(t, breaker.Open, g.Snapshot()[0].State)
		}
		f.probe(1).Done(t.Context(), breaker.Result{Kind: breaker.Success})
		f.settled(breaker.Closed)
	})
}

func TestUnreadableAnnouncementsAreIgnored(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := newFleet(t, 1, breaker.Settings{Threshold: 1})
		for subject, data := range map[string]string{
			subjects.Failure(key):       "timeout",
			subjects.Failure(key) + ".": `{"by":"x"}`,
			subjects.Failure("other"):   `{"by":"x","why":"timeout"}`,
			subjects.Failure("a.b.c"):   `{"by":"x","why":"timeout"}`,
		} {
			_ = f.nc.Publish(subject, []byte(data))
		}
		elapse(time.Second)
		require.True(t, f.breakers[0].Ready())
		require.NoError(t, f.nc.Publish(subjects.Failure(key), []byte(`{"by":"x","why":"timeout"}`)))
		f.settled(breaker.Open)
	})
}
