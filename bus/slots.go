package bus

import (
	"sync"
	"time"
)

// slots bounds the requests at once and decides when the worker should leave
// the queue group and when it should come back. It has no clock of its own.
type slots struct {
	limit, low       int // full at limit; calm below low
	fullFor, calmFor time.Duration
	changed          chan struct{} // holds one token after a change that next should see

	mu        sync.Mutex
	used      int
	away      bool
	fullSince time.Time
	freeSince time.Time // when the last full spell was interrupted
	calmSince time.Time
}

func newSlots(limit int, fullFor, calmFor time.Duration) *slots {
	return &slots{limit: limit, low: max(1, limit*3/4), fullFor: fullFor, calmFor: calmFor, changed: make(chan struct{}, 1)}
}

// breather is how long a slot must stay free to end a full spell. Under load a
// freed slot is taken again at once, and that is no relief.
const breather = 100 * time.Millisecond

// take takes a slot, or reports that none is free.
func (s *slots) take(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == s.limit {
		return false
	}
	if s.used++; s.used == s.limit {
		if s.freeSince.IsZero() || now.Sub(s.freeSince) > breather {
			s.fullSince = now
		}
		s.signal()
	}
	return true
}

// give gives a slot back.
func (s *slots) give(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	rejoin
)

// next decides what to do now and when to ask again; 0 means after the next
// change.
func (s *slots) next(now time.Time) (move, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.away && s.used == s.limit:
		if wait := s.fullFor - now.Sub(s.fullSince); wait > 0 {
			return stay, wait
		}
		s.away = true
		return leave, 0
	case s.away && s.used < s.low:
		if wait := s.calmFor - now.Sub(s.calmSince); wait > 0 {
			return stay, wait
		}
		s.away = false
		s.freeSince = time.Time{}
		return rejoin, 0
	}
	return stay, 0
}

// load is the number of slots in use and whether the worker is away.
func (s *slots) load() (used int, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.away
}
