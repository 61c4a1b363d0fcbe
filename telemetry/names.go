package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"
	"sync/atomic"
)

// other stands for all names beyond a bound.
const other = "other"

// table keeps what was made for a key. Reading takes no lock. Beyond most keys
// nothing is kept, which is slow but bounded; keys come from the configuration,
// so that this is not reached.
type table[K comparable, V any] struct {
	most int
	mu   sync.Mutex
	kept atomic.Pointer[map[K]V] // copied to be changed
}

func newTable[K comparable, V any](most int) *table[K, V] {
	t := &table[K, V]{most: most}
	t.kept.Store(&map[K]V{})
	return t
}

func (t *table[K, V]) get(key K, create func(K) V) V {
	if v, ok := (*t.kept.Load())[key]; ok {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.kept.Load()
	if v, ok := old[key]; ok {
		return v
	}
	v := create(key)
	if len(old) < t.most {
		next := maps.Clone(old)
		next[key] = v
		t.kept.Store(&next)
	}
	return v
}

// versions lets each target have a few model versions, since the provider
// chooses their names.
type versions struct {
	mu   sync.Mutex
	seen map[[2]string]map[string]bool
}

// perTarget is how many versions of a model have a label at once.
const perTarget = 8

// name is version, or other where the target has too many.
func (v *versions) name(provider, model, version string) string {
	if version == "" || version == model {
		return version
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	target := [2]string{provider, model}
	seen := v.seen[target]
	switch {
	case seen[version]:
		return version
	case len(seen) >= perTarget || len(version) > maxName:
		return other
	case seen == nil:
		seen = map[string]bool{}
		v.seen[target] = seen
	}
	seen[version] = true
	return version
}

// maxName is the longest version that becomes a label, in bytes.
const maxName = 128

// hash makes a tenant recognisable without naming it, as the log does.
func hash(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:6])
}
