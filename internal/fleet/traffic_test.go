package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramIsExactBelow16AndToAnEighthAbove(t *testing.T) {
	for _, ms := range []int64{-5, 0, 1, 15, 16, 17, 100, 999, 30_000, 4_000_000, longest, 1 << 40} {
		want := min(max(ms, 0), longest)
		require.InDelta(t, want, middleOf(slotOf(ms)), float64(want)/8, ms)
		require.Less(t, slotOf(ms), slots)
	}
	for ms := int64(1); ms < 100_000; ms++ {
		require.GreaterOrEqual(t, slotOf(ms), slotOf(ms-1))
	}
}

func TestQuantiles(t *testing.T) {
	var h histogram
	require.Nil(t, h.quantile(0.5))
	h.add(7)
	require.Equal(t, []int64{7, 7, 7}, []int64{*h.quantile(0), *h.quantile(0.5), *h.quantile(1)})
	for range 99 {
		h.add(1000)
	}
	require.EqualValues(t, 7, *h.quantile(0.01))
	require.InDelta(t, 1000, *h.quantile(0.5), 125)
}

func TestTrafficForgetsWhatIsOld(t *testing.T) {
	start := time.Now()
	tr := newTraffic(start, kept)
	tr.features = map[string]*traffic{}
	for i := range 300 {
		at := start.Add(time.Duration(i)*time.Second + 500*time.Millisecond)
		for i := range 4 {
			tr.count(&Event{Name: "request_succeeded", Feature: "f", MS: 10}, i == 0, at)
		}
		tr.count(&Event{Name: "request_failed", Feature: "f", MS: 10}, false, at)
		tr.count(&Event{Name: "failover_succeeded", Feature: "f"}, true, at)
		tr.count(&Event{Name: "request_started", Feature: "f"}, true, at)
	}
	now := start.Add(300 * time.Second)
	v := tr.view(now)
	require.Equal(t, []any{5.0, int64(300), int64(60), int64(60)}, []any{v.PerSec, v.Requests, v.Failed, v.Rescued})
	require.Len(t, v.Series, kept-1, "the second under way would look like a dip")
	require.Equal(t, Second{Ended: 5, Failed: 1, Rescued: 1, Median: new(int64(10)), Total: new(int64(10))}, v.Series[0])
	f := Feature{Name: "f"}
	tr.into(&f, now)
	require.Equal(t, Feature{Name: "f", PerSec: 5, Requests: 300, Failed: 60, Rescued: 60, P95MS: new(int64(10))}, f)

	later := tr.view(now.Add(time.Hour))
	require.Zero(t, later.Requests)
	require.Equal(t, Second{}, later.Series[0])
}

func TestTrafficIsBounded(t *testing.T) {
	now := time.Now()
	tr := newTraffic(now, kept)
	tr.features = map[string]*traffic{}
	var n notable
	for i := range 10_000 {
		e := &Event{Name: "request_failed", RequestID: fmt.Sprint(i), Feature: fmt.Sprintf("f%d", i)}
		tr.count(e, false, now)
		n.take(e, now.Add(time.Duration(i)))
		n.take(&Event{Name: "circuit_opened", Breaker: fmt.Sprint(i)}, now.Add(time.Duration(i)))
	}
	require.Len(t, tr.features, maxFeatures)
	require.Len(t, n.view(), 2*maxNotable)
	require.Equal(t, []string{"9999", "9999"}, []string{n.view()[0].Breaker, n.view()[1].RequestID})
}

func TestFlipsOfOneSwitchAreOneEvent(t *testing.T) {
	now := time.Now()
	var n notable
	flip := func(revision uint64, on bool, after time.Duration) {
		n.take(&Event{Name: "kill_switch_flipped", Flag: "all", Revision: revision, On: &on, Workers: 9}, now.Add(after))
	}
	flip(1, false, 0)
	flip(1, false, time.Millisecond)
	flip(1, false, time.Millisecond)
	flip(0, true, time.Second)
	flip(0, true, time.Second)
	flip(0, true, time.Minute)
	var workers []int
	for _, e := range n.view() {
		workers = append(workers, e.Workers)
	}
	require.Equal(t, []int{1, 2, 3}, workers)
}

func TestTroubleOfManyRequestsIsOneEvent(t *testing.T) {
	now := time.Now()
	var n notable
	for i := range 100 {
		at := now.Add(time.Duration(i) * time.Second)
		n.take(&Event{Name: "failover_attempted", RequestID: fmt.Sprint(i), Feature: "f"}, at)
		n.take(&Event{Name: "failover_succeeded", RequestID: fmt.Sprint(i), Feature: "f"}, at)
	}
	n.take(&Event{Name: "failover_succeeded", RequestID: "x", Feature: "g"}, now.Add(100*time.Second))
	n.take(&Event{Name: "failover_succeeded", RequestID: "y", Feature: "f"}, now.Add(time.Hour))
	for i, limit := range []string{"concurrent", "tokens_per_minute", "concurrent"} {
		e, err := DecodeEvent(fmt.Appendf(nil, `{"event":"limit_exceeded","request_id":"l%d","feature":"f","limit":%q}`, i, limit))
		require.NoError(t, err)
		n.take(e, now.Add(2*time.Hour))
	}
	var told []string
	for _, e := range n.view() {
		told = append(told, fmt.Sprint(e.RequestID, " ", e.Feature+e.Limit, " ", e.Times))
	}
	require.Equal(t, []string{"l2 fconcurrent 2", "l1 ftokens_per_minute 1", "y f 1", "x g 1", "99 f 100", "99 f 100"}, told)
}

func TestCostBeginsAnewAtMidnight(t *testing.T) {
	var s spending
	evening := time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)
	s.add(1.5, evening)
	s.add(1, evening.Add(30*time.Second))
	s.add(-7, evening.Add(30*time.Second))
	require.Equal(t, 2.5, s.usd)
	require.Equal(t, evening, s.since)
	s.add(0.25, evening.Add(2*time.Minute))
	require.Equal(t, 0.25, s.usd)
	require.Equal(t, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), s.since)
}

func TestDecodeEvent(t *testing.T) {
	e, err := DecodeEvent([]byte(`{"event":"kill_switch_flipped","flag":"all","on":false,"reason":"` + strings.Repeat("ä", 300) + `","workers":9,"new":1}`))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ä", 100), e.Reason)
	require.Zero(t, e.Workers)
	require.False(t, *e.On)
	for _, bad := range []string{"", "null", "[]", "{}", `{"event":""}`, `{"event":7}`, `{"event":"x","ms":"y"}`} {
		_, err := DecodeEvent([]byte(bad))
		require.ErrorIs(t, err, ErrNotEvent, bad)
	}
}

// FuzzEvent checks that no message is too much for the picture.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"event":"request_succeeded","request_id":"r","feature":"f","ms":-1,"first_token_ms":9223372036854775807,"cost_usd":-1e308}`))
	f.Add([]byte(`{"event":"circuit_opened","breaker":"p.m","time":"2026-11-30T08:23:40Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEvent(data)
		if err != nil {
			return
		}
		now := time.Now()
		tr := newTraffic(now, kept)
		tr.features = map[string]*traffic{}
		var n notable
		tr.count(e, true, now.Add(time.Duration(rand.Int64N(1e12))))
		n.take(e, now)
		require.LessOrEqual(t, len(e.Name)+len(e.Reason)+len(e.Feature), 3*maxText)
		tr.view(now.Add(time.Hour))
	})
}
