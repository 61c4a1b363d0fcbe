package bus

import (
	"sync"
	"time"
)

// slots bounds the requests at once and decides when the worker should leave
// the queue group and when it should come back. It has no clock of its own.
type slots struct {
	limit, low       int     // full at limit; calm below low
	shares           *shares // nil where all requests are of one tenant
	fullFor, calmFor time.Duration
	changed          chan struct{} // holds one token after a change that next should see

	mu        sync.Mutex
	used      int
	away      bool
	fullSince time.Time
	freeSince time.Time // when the last full spell was interrupted
	calmSince time.Time
	rejoined  time.Time     // zero before the first time
	ban       time.Duration // of the latest relapse
	banned    time.Time     // until then others go first
	asked     time.Time     // when it was last asked whether they have room
}

const (
	relapse    = 10 * time.Second // full again so soon after a return: this worker is too slow for its share
	firstBan   = 2 * time.Second
	longestBan = 30 * time.Second
	askedEvery = time.Second
)

func newSlots(limit int, shares *shares, fullFor, calmFor time.Duration) *slots {
	return &slots{limit: limit, shares: shares, low: max(1, limit*3/4), fullFor: fullFor, calmFor: calmFor, changed: make(chan struct{}, 1)}
}

// breather is how long a slot must stay free to end a full spell. Under load a
// freed slot is taken again at once, and that is no relief.
const breather = 100 * time.Millisecond

// take takes a slot for a tenant, or says why it gets none.
func (s *slots) take(tenant string, now time.Time) refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.used == s.limit:
		return full
	case !s.shares.take(tenant, s.limit-s.used):
		return unfair
	}
	if s.used++; s.used == s.limit {
		if s.freeSince.IsZero() || now.Sub(s.freeSince) > breather {
			s.fullSince = now
		}
		s.signal()
	}
	return none
}

// give gives a tenant's slot back.
func (s *slots) give(tenant string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares.give(tenant)
	if s.used == s.limit {
		s.freeSince = now
	}
	if s.used--; s.used == s.low-1 {
		s.calmSince = now
		s.signal()
	}
}

func (s *slots) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// move is what next asks for.
type move int

const (
	stay move = iota
	leave
	ask // whether other workers have room; if not, pardon
	rejoin
)

// next decides what to do now and when to ask again; 0 means after the next
// change.
func (s *slots) next(now time.Time) (move, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.away && s.used == s.limit:
		patience := s.fullFor
		if s.ban > 0 { // known to be slower than the others, who had room
			patience /= 4
		}
		if wait := patience - now.Sub(s.fullSince); wait > 0 {
			return stay, wait
		}
		s.away = true
		s.punish(now)
		return leave, 0
	case s.away && s.used < s.low:
		if wait := s.calmFor - now.Sub(s.calmSince); wait > 0 {
			return stay, wait
		}
		if left := s.banned.Sub(now); left > 0 {
			if wait := askedEvery - now.Sub(s.asked); wait > 0 {
				return stay, min(wait, left)
			}
			s.asked = now
			return ask, min(askedEvery, left)
		}
		s.away, s.rejoined = false, now
		s.freeSince = time.Time{}
		return rejoin, 0
	}
	return stay, 0
}

// punish keeps a worker away longer each time that it comes back and is full
// again soon. With less traffic or a quicker model it comes back for good.
func (s *slots) punish(now time.Time) {
	if s.rejoined.IsZero() || now.Sub(s.rejoined) >= relapse {
		s.ban = 0
		return
	}
	s.ban = min(longestBan, max(firstBan, 2*s.ban))
	s.banned = now.Add(s.ban)
}

// pardon lets the worker come back at once: nobody has room, and so all are
// needed.
func (s *slots) pardon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.banned, s.ban = time.Time{}, 0
}

// load is the number of slots in use and whether the worker is away.
func (s *slots) load() (used int, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.away
}
