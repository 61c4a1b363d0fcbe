package kv

import (
	"cmp"
	"maps"
	"slices"
)

// FlagSet is all flags of one instant, parsed. It never changes, and asking it
// does not allocate. Each map holds only what is off.
type FlagSet struct {
	flags     map[string]Flag // all that were understood, by key
	malformed []string        // keys that name nothing

	all       *Flag
	features  map[string]*Flag
	providers map[string]*Flag
	tenants   map[string]*Flag
	models    map[pair]*Flag
	pairs     map[pair]*Flag // feature and tenant
	failover  map[pair]*Flag // feature and tenant, either may be empty
}

// ParseFlags makes a set from keys and values as they are in the bucket.
func ParseFlags(values map[string]string) *FlagSet {
	flags := make([]Flag, 0, len(values))
	for key, value := range values {
		flags = append(flags, parseFlag(key, value))
	}
	return newFlagSet(flags)
}

func newFlagSet(flags []Flag) *FlagSet {
	s := &FlagSet{
		flags:    make(map[string]Flag, len(flags)),
		features: make(map[string]*Flag), providers: make(map[string]*Flag), tenants: make(map[string]*Flag),
		models: make(map[pair]*Flag), pairs: make(map[pair]*Flag), failover: make(map[pair]*Flag),
	}
	for _, f := range flags {
		what, names, err := parseKey(f.Key)
		if err != nil {
			s.malformed = append(s.malformed, f.Key)
			continue
		}
		s.flags[f.Key] = f
		if !f.On {
			s.add(what, names, &f)
		}
	}
	slices.Sort(s.malformed)
	return s
}

func (s *FlagSet) add(what scope, names pair, f *Flag) {
	switch what {
	case scopeAll:
		s.all = f
	case scopeFeature:
		s.features[names.a] = f
	case scopeProvider:
		s.providers[names.a] = f
	case scopeTenant:
		s.tenants[names.a] = f
	case scopeModel:
		s.models[names] = f
	case scopeFeatureTenant:
		s.pairs[names] = f
	case scopeFailover:
		s.failover[names] = f
	}
}

// Off reports whether requests of the feature and tenant are switched off, and
// by which flag. If several say so, one with Now is preferred, then the widest.
func (s *FlagSet) Off(feature, tenant string) (flag Flag, off bool) {
	f := stronger(s.all, s.features[feature])
	if tenant != "" && (f == nil || !f.Now) {
		f = stronger(f, s.tenants[tenant])
		f = stronger(f, s.pairs[pair{feature, tenant}])
	}
	if f == nil {
		return Flag{}, false
	}
	return *f, true
}

// TargetOff reports whether a model may not be called.
func (s *FlagSet) TargetOff(provider, model string) bool { return s.target(provider, model) != nil }

// TargetOffNow reports whether calls of a model that are in flight must stop.
func (s *FlagSet) TargetOffNow(provider, model string) bool {
	f := s.target(provider, model)
	return f != nil && f.Now
}

func (s *FlagSet) target(provider, model string) *Flag {
	return stronger(s.providers[provider], s.models[pair{provider, model}])
}

// FailoverOff reports whether a request must not move on to another target.
func (s *FlagSet) FailoverOff(feature, tenant string) bool {
	if len(s.failover) == 0 {
		return false
	}
	return s.failover[pair{}] != nil || s.failover[pair{feature, ""}] != nil ||
		tenant != "" && s.failover[pair{feature, tenant}] != nil
}

// stronger is the first unless only the second stops what is in flight.
func stronger(a, b *Flag) *Flag {
	if a == nil || b != nil && b.Now && !a.Now {
		return b
	}
	return a
}

// List returns all flags, on or off, sorted by key.
func (s *FlagSet) List() []Flag {
	return slices.SortedFunc(maps.Values(s.flags), func(a, b Flag) int { return cmp.Compare(a.Key, b.Key) })
}

// Get returns the flag of a key; a key that is not set is on.
func (s *FlagSet) Get(key string) (flag Flag, set bool) {
	flag, set = s.flags[key]
	return flag, set
}

// Unrecognised lists the flags whose value is none of the words, by key.
func (s *FlagSet) Unrecognised() []string {
	var keys []string
	for key, f := range s.flags {
		if f.Unrecognised {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Malformed lists the keys that name nothing and have no effect, sorted.
func (s *FlagSet) Malformed() []string { return slices.Clone(s.malformed) }
