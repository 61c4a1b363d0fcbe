package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// breakersOf merges what is stored with what the live workers say. trusted says
// that the records are up to date.
func breakersOf(records []kv.Entry, live []*worker, trusted bool, now time.Time) []Breaker {
	said := opinions(live, now)
	list := map[string]Breaker{}
	for _, e := range records {
		r, err := breaker.DecodeRecord(e.Value)
		if err != nil || !trusted && len(said[e.Key]) > 0 {
			continue
		}
		list[e.Key] = stored(e, r, now)
	}
	for key, views := range said {
		b, known := list[key]
		if !known {
			b = majority(views)
		}
		for _, v := range views {
			b.Of++
			b.Failures = max(b.Failures, v.Failures)
			if v.State == b.State {
				b.Workers++
			}
		}
		list[key] = b
	}
	all := make([]Breaker, 0, len(list))
	for key, b := range list {
		b.Key = key
		var ok bool
		if b.Provider, b.Model, ok = subjects.ParseBreakerKey(key); !ok {
			b.Provider, b.Model = key, ""
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Breaker) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// stored is a breaker by its record, whose times are relative to its storage.
func stored(e kv.Entry, r breaker.Record, now time.Time) Breaker {
	age := e.Age(now).Milliseconds()
	b := Breaker{State: r.State, Why: r.Why, ForMS: max(0, age), Generation: r.Generation, By: r.By}
	if b.State != breaker.Closed {
		b.RetryMS = max(0, cmp.Or(r.WaitMS, r.CoolDownMS)-age)
	}
	if b.State == breaker.Cooling && b.RetryMS == 0 {
		b.State = breaker.Closed // it ends by itself
	}
	if b.State == breaker.Closed {
		b.Why = ""
	}
	return b
}

// opinions are the live workers' views of each breaker, brought up to now.
func opinions(live []*worker, now time.Time) map[string][]Breaker {
	said := map[string][]Breaker{}
	for _, k := range live {
		age := now.Sub(k.heard).Milliseconds()
		for _, s := range k.Details.Breakers {
			b := Breaker{State: s.State, Why: s.Why, ForMS: max(0, now.Sub(s.Since).Milliseconds()), Failures: s.Failures, Generation: s.Generation, By: s.By}
			if s.State != breaker.Closed {
				b.RetryMS = max(0, s.RetryMS-age)
			}
			said[s.Key] = append(said[s.Key], b)
		}
	}
	return said
}

// majority is what most workers say, and of several such the worse.
func majority(views []Breaker) Breaker {
	votes := map[breaker.State]int{}
	for _, v := range views {
		votes[v.State]++
	}
	best := slices.MaxFunc(views, func(a, b Breaker) int {
		return cmp.Or(votes[a.State]-votes[b.State], severity(a.State)-severity(b.State), cmp.Compare(a.Generation, b.Generation))
	})
	best.Failures = 0
	return best
}

func severity(s breaker.State) int {
	return slices.Index([]breaker.State{breaker.Closed, breaker.Cooling, breaker.HalfOpen, breaker.Open}, s)
}
