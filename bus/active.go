package bus

import (
	"context"
	"sync"
	"sync/atomic"
)

// active holds the requests under way by their id.
type active struct {
	mu   sync.Mutex
	byID map[string]*running
}

// running is one request under way.
type running struct {
	cancel  context.CancelCauseFunc
	replies bool        // somebody waits on a reply subject besides the stream
	unheard atomic.Bool // nobody listened to the stream when it began
}

func newActive() *active { return &active{byID: make(map[string]*running)} }

// add reports false if a request of that id is under way.
func (a *active) add(id string, r *running) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, taken := a.byID[id]; taken {
		return false
	}
	a.byID[id] = r
	return true
}

// remove frees the id, unless another request has it by now.
func (a *active) remove(id string, r *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID[id] == r {
		delete(a.byID, id)
	}
}

func (a *active) get(id string) (*running, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.byID[id]
	return r, ok
}

func (a *active) has(id string) bool {
	_, ok := a.get(id)
	return ok
}
