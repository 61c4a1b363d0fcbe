package limits

import (
	"sync/atomic"

	"github.com/llmbus/llmbus/subjects"
)

// tenant is what this worker knows of one tenant that has asked lately.
type tenant struct {
	name     string
	accounts map[string]*account // by feature
	pools    map[string]*pool    // by key
	open     atomic.Int64        // grants that are not settled
	used     atomic.Int64        // the beat before the last request
}

// account is what one tenant's requests to one feature must fit.
type account struct {
	tenant *tenant
	clock  *clock
	once   []*pool // slots, then requests: one for each request
	tokens []*pool
	usd    []*pool
}

// account finds or makes the account, and opens a grant of its tenant; nil if
// no limit applies.
func (l *Limiter) account(name, feature string) *account {
	p := l.policy.Load()
	if len(p.Tenants.of(name)) == 0 && len(p.Features[feature].of(name)) == 0 {
		return nil
	}
	l.mu.RLock()
	t := l.tenants[name]
	var a *account
	if t != nil {
		if a = t.accounts[feature]; a != nil {
			t.enter(l.tick.Load())
		}
	}
	l.mu.RUnlock()
	if a == nil {
		a = l.newAccount(name, feature)
	}
	return a
}

func (l *Limiter) newAccount(name, feature string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[name]
	if t == nil {
		t = &tenant{name: name, accounts: map[string]*account{}, pools: map[string]*pool{}}
		l.tenants[name] = t
	}
	a := t.accounts[feature]
	if a == nil {
		a = l.open(t, feature)
		t.accounts[feature] = a
	}
	t.enter(l.tick.Load())
	return a
}

// enter counts a grant, which keeps the tenant from being forgotten.
func (t *tenant) enter(now int64) {
	t.open.Add(1)
	t.used.Store(now)
}

func (a *account) now() int64 { return a.clock.now() }

// open makes an account from the policy. The Limiter is locked.
func (l *Limiter) open(t *tenant, feature string) *account {
	a := &account{tenant: t, clock: &l.clock}
	var requests []*pool
	for _, s := range l.policy.Load().of(t.name, feature) {
		p := l.poolOf(t, s)
		switch s.Kind {
		case Concurrent:
			a.once = append(a.once, p)
		case Requests:
			requests = append(requests, p)
		case Tokens:
			a.tokens = append(a.tokens, p)
		case USD:
			a.usd = append(a.usd, p)
		}
	}
	a.once = append(a.once, requests...)
	return a
}

// poolOf finds or makes a pool. The Limiter is locked.
func (l *Limiter) poolOf(t *tenant, s scoped) *pool {
	key := subjects.LimitKey(string(s.Window), s.tenant, s.feature, string(s.Kind))
	if s.Kind == Concurrent {
		key = subjects.SlotKey(s.tenant, s.feature)
	}
	p := t.pools[key]
	if p == nil {
		p = &pool{scoped: s, frame: frameOf(s.Window, s.tenant), key: key, src: l.counters, l: l, line: make(chan struct{}, 1)}
		if s.Kind == Concurrent {
			p.src = l.slots
		}
		t.pools[key], l.pools[key] = p, p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = s.Amount
	return p
}
