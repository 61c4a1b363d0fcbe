package fleet

import (
	"time"

	"github.com/llmbus/llmbus/chain"
)

const (
	kept        = 120 // seconds of a series
	recent      = 60  // seconds that shares and quantiles are of
	brief       = 10  // seconds that rates are of
	maxFeatures = 64  // with counts of their own
)

// second is the traffic of one second, counted since the watch began.
type second struct {
	at                     int64
	ended, failed, rescued int64
	first, total           histogram
}

// traffic counts the ends of requests in a ring of seconds.
type traffic struct {
	began    time.Time
	ring     []second
	features map[string]*traffic // rings of features; nil in these themselves
}

func newTraffic(now time.Time, seconds int) *traffic {
	t := &traffic{began: now, ring: make([]second, seconds)}
	for i := range t.ring {
		t.ring[i].at = -1
	}
	return t
}

// count takes an event. elsewhere says that it is of an answer that did not come
// from the feature's first target.
func (t *traffic) count(e *Event, elsewhere bool, now time.Time) {
	if e.Name != chain.EventRequestSucceeded && e.Name != chain.EventRequestFailed {
		return
	}
	t.second(now).count(e, elsewhere)
	if f := t.feature(e.Feature); f != nil {
		f.second(now).count(e, elsewhere)
	}
}

func (t *traffic) feature(name string) *traffic {
	f := t.features[name]
	if f == nil && t.features != nil && name != "" && len(t.features) < maxFeatures {
		f = newTraffic(t.began, recent+1)
		t.features[name] = f
	}
	return f
}

// second is the one of now, emptied if its place was that of an older one.
func (t *traffic) second(now time.Time) *second {
	at := t.since(now)
	s := &t.ring[at%int64(len(t.ring))]
	if s.at != at {
		*s = second{at: at}
	}
	return s
}

func (t *traffic) since(now time.Time) int64 { return int64(now.Sub(t.began) / time.Second) }

func (s *second) count(e *Event, elsewhere bool) {
	s.ended++
	if e.Name == chain.EventRequestFailed {
		s.failed++
		return
	}
	if elsewhere {
		s.rescued++
	}
	s.total.add(e.MS)
	if e.FirstTokenMS > 0 {
		s.first.add(e.FirstTokenMS)
	}
}

// last merges the whole seconds before now, n at most, and says how many the
// watch has had of them.
func (t *traffic) last(n int, now time.Time) (sum second, had int) {
	for at := t.since(now) - 1; at >= 0 && had < n; at-- {
		had++
		s := &t.ring[at%int64(len(t.ring))]
		if s.at != at {
			continue
		}
		sum.ended += s.ended
		sum.failed += s.failed
		sum.rescued += s.rescued
		sum.first.merge(&s.first)
		sum.total.merge(&s.total)
	}
	return sum, had
}

func (t *traffic) perSecond(now time.Time) float64 {
	sum, had := t.last(brief, now)
	if had == 0 {
		return 0
	}
	return float64(sum.ended) / float64(had)
}

func (t *traffic) view(now time.Time) Traffic {
	sum, _ := t.last(recent, now)
	v := Traffic{WatchedMS: now.Sub(t.began).Milliseconds(), PerSec: t.perSecond(now), Requests: sum.ended, Failed: sum.failed, Rescued: sum.rescued,
		FirstToken: sum.first.latency(), Total: sum.total.latency(), Series: []Second{}}
	end := t.since(now)
	for at := max(0, end-int64(kept)+1); at < end; at++ {
		s := &t.ring[at%int64(len(t.ring))]
		if s.at != at {
			v.Series = append(v.Series, Second{})
			continue
		}
		v.Series = append(v.Series, Second{Ended: s.ended, Failed: s.failed, Rescued: s.rescued,
			FirstToken: s.first.quantile(0.95), Median: s.total.quantile(0.5), Total: s.total.quantile(0.95)})
	}
	return v
}

// into completes a feature by its counts.
func (t *traffic) into(f *Feature, now time.Time) {
	own := t.features[f.Name]
	if own == nil {
		return
	}
	sum, _ := own.last(recent, now)
	f.PerSec, f.Requests, f.Failed, f.Rescued, f.P95MS = own.perSecond(now), sum.ended, sum.failed, sum.rescued, sum.total.quantile(0.95)
}
