package sim

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Stats is what a Server has seen since it was made.
type Stats struct {
	Calls     map[string]int `json:"calls"`     // by model
	Providers map[string]int `json:"providers"` // by protocol
	Finished  int            `json:"finished"`  // answered as planned, failures on purpose included
	InFlight  int            `json:"in_flight"`
	Cancelled map[string]int `json:"cancelled"` // by model: the client closed before the answer was whole
	Cancels   []Cancel       `json:"cancels"`   // the newest of them, oldest first
	Open      int            `json:"open_connections"`
	Accepted  int            `json:"accepted_connections"`
}

// Cancel is one call that its client gave up.
type Cancel struct {
	Model string    `json:"model"`
	At    time.Time `json:"at"` // when the server saw the connection close
}

// maxCancels bounds Stats.Cancels.
const maxCancels = 4096

// Stats returns a copy of the counters.
func (s *Server) Stats() Stats {
	stats := s.counters.copy()
	stats.Open, stats.Accepted = s.gate.counts()
	return stats
}

// Calls returns how many calls came for a model.
func (s *Server) Calls(model string) int {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	return s.counters.stats.Calls[model]
}

type counters struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counters) init() {
	c.stats = Stats{Calls: map[string]int{}, Providers: map[string]int{}, Cancelled: map[string]int{}}
}

// begin counts a call in, and returns which one of its model it is, from 1.
func (c *counters) begin(provider, model string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Calls[model]++
	c.stats.Providers[provider]++
	c.stats.InFlight++
	return c.stats.Calls[model]
}

// end counts a call out.
func (c *counters) end(model string, cancelled bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.InFlight--
	if !cancelled {
		c.stats.Finished++
		return
	}
	c.stats.Cancelled[model]++
	if len(c.stats.Cancels) == maxCancels {
		c.stats.Cancels = slices.Delete(c.stats.Cancels, 0, maxCancels/2)
	}
	c.stats.Cancels = append(c.stats.Cancels, Cancel{model, now})
}

func (c *counters) copy() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Calls = maps.Clone(stats.Calls)
	stats.Providers = maps.Clone(stats.Providers)
	stats.Cancelled = maps.Clone(stats.Cancelled)
	stats.Cancels = slices.Clone(stats.Cancels)
	return stats
}
