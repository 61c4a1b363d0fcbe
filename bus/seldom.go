package bus

import (
	"sync"
	"time"
)

// seldom keeps what anybody can cause from filling the log. The zero value is
// ready.
type seldom struct {
	mu     sync.Mutex
	last   time.Time
	missed int
}

const seldomEvery = time.Minute

// tick counts one occurrence and reports whether it is time to log, and how many
// there were since the last time.
func (s *seldom) tick() (count int, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed++
	if t := time.Now(); s.last.IsZero() || t.Sub(s.last) >= seldomEvery {
		count, s.missed, s.last = s.missed, 0, t
		return count, true
	}
	return 0, false
}
