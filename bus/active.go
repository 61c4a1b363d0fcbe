package bus

import (
	"context"
	"sync"
	"sync/atomic"
)

// active holds the requests under way by their key.
type active struct {
	mu    sync.Mutex
	byKey map[string]*running
}

// activeKey is the key of a request: ids of different tenants are different
// ones. tenant is that of the subject, and neither it nor the id holds a space.
func activeKey(tenant, id string) string {
	if tenant == "" {
		return id
	}
	return tenant + " " + id
}

// running is one request under way.
type running struct {
	cancel  context.CancelCauseFunc
	replies bool        // somebody waits on a reply subject besides the stream
	unheard atomic.Bool // nobody listened to the stream when it began
}

func newActive() *active { return &active{byKey: make(map[string]*running)} }

// add reports false if a request of that key is under way.
func (a *active) add(key string, r *running) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, taken := a.byKey[key]; taken {
		return false
	}
	a.byKey[key] = r
	return true
}

// remove frees the key, unless another request has it by now.
func (a *active) remove(key string, r *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[key] == r {
		delete(a.byKey, key)
	}
}

func (a *active) get(key string) (*running, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.byKey[key]
	return r, ok
}

func (a *active) has(key string) bool {
	_, ok := a.get(key)
	return ok
}
