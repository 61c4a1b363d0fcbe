package fleet

import (
	"slices"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// View is the fleet as it is known now.
func (w *Watch) View() *View { return w.view(time.Now()) }

func (w *Watch) view(now time.Time) *View {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, live := w.present(now)
	if len(live) > 0 {
		w.features = featuresOf(live)
	}
	v := &View{At: now, NATS: w.nats(), Stale: w.stale(live), Features: []Feature{}, Switches: []Switch{}, Workers: []Worker{},
		Traffic: w.traffic.view(now), Cost: w.costs(now), Jobs: w.jobs.Jobs, Events: w.notable.view()}
	if w.events != nil {
		dropped, _ := w.events.Dropped() // fails only once it has ended
		v.Traffic.Missed = int64(dropped)
	}
	for _, k := range all {
		v.Workers = append(v.Workers, k.view(now, missing*w.interval))
	}
	v.Breakers = breakersOf(entries(w.breakers), live, fresh(w.breakers), now)
	flags := flagsOf(entries(w.flags))
	v.Switches = append(v.Switches, flags.switches...)
	for _, f := range w.features {
		f.Targets = slices.Clone(f.Targets)
		_, f.Off = flags.Off(f.Name, "")
		w.traffic.into(&f, now)
		for i := range f.Targets {
			t := &f.Targets[i]
			t.State, t.Off = stateOf(v.Breakers, t), flags.TargetOff(t.Provider, t.Model)
		}
		v.Features = append(v.Features, f)
	}
	v.Keys = keysOf(v.Features)
	return v
}

// keysOf are the flags of everything, and of all that features name.
func keysOf(features []Feature) []string {
	keys := []string{kv.AllKey, kv.FailoverKey("", "")}
	for _, f := range features {
		keys = append(keys, kv.FeatureKey(f.Name), kv.FailoverKey(f.Name, ""))
		for _, t := range f.Targets {
			keys = append(keys, kv.ProviderKey(t.Provider), kv.ModelKey(t.Provider, t.Model))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (w *Watch) nats() NATS {
	return NATS{Connected: w.conn.IsConnected(), Server: w.conn.ConnectedUrlRedacted()}
}

// stale names the parts that may be out of date. It needs the lock.
func (w *Watch) stale(live []*worker) []Part {
	parts := []Part{}
	add := func(p Part, is bool) {
		if is {
			parts = append(parts, p)
		}
	}
	away := !w.conn.IsConnected()
	add(PartNATS, away)
	add(PartWorkers, away || len(live) == 0)
	add(PartBreakers, !fresh(w.breakers))
	add(PartSwitches, !fresh(w.flags))
	add(PartEvents, away || w.denied)
	add(PartJobs, away || w.jobs.failed || w.jobs.Waiting == nil)
	return parts
}

func fresh(m *kv.Mirror) bool { return m != nil && m.Fresh() }

func entries(m *kv.Mirror) []kv.Entry {
	if m == nil {
		return nil
	}
	return slices.Collect(m.All())
}

// stateOf finds the breaker of a target: its own, or the one of its provider.
func stateOf(breakers []Breaker, t *Target) breaker.State {
	state := breaker.Closed
	for i := range breakers {
		switch b := &breakers[i]; b.Key {
		case subjects.BreakerKey(t.Provider, t.Model):
			return b.State
		case subjects.BreakerKey(t.Provider, ""):
			state = b.State
		}
	}
	return state
}

// flagList is the set of flags with what a list of them shows.
type flagList struct {
	*kv.FlagSet
	switches []Switch
}

func flagsOf(list []kv.Entry) flagList {
	values, at := make(map[string]string, len(list)), make(map[string]kv.Entry, len(list))
	for _, e := range list {
		values[e.Key], at[e.Key] = string(e.Value), e
	}
	set := kv.ParseFlags(values)
	var switches []Switch
	for _, f := range set.List() {
		e := at[f.Key]
		switches = append(switches, Switch{Key: f.Key, On: f.On, Now: f.Now, By: clip(f.By), Reason: clip(f.Reason), Unrecognised: f.Unrecognised,
			Set: e.Created, Revision: e.Revision})
	}
	return flagList{set, switches}
}
