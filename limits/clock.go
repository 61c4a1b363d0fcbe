package limits

import (
	"sync/atomic"
	"time"
)

// clock tells the server's time, by which windows begin and end: the clocks of
// two workers are never compared. Before the first reading it is the local one.
// Between two readings it advances with the local monotonic clock, whatever is
// done to the local date.
type clock struct{ read atomic.Pointer[reading] }

type reading struct{ server, local time.Time }

// set takes the middle of a round trip for the moment of the server's answer.
func (c *clock) set(server, asked time.Time) {
	now := time.Now()
	c.read.Store(&reading{server.Round(0), asked.Add(now.Sub(asked) / 2)})
}

func (c *clock) known() bool { return c.read.Load() != nil }

// now is the server's time in nanoseconds of Unix time.
func (c *clock) now() int64 {
	r := c.read.Load()
	if r == nil {
		return time.Now().UnixNano()
	}
	return r.server.UnixNano() + int64(time.Since(r.local))
}

// frame is how a tenant's windows of one length lie in time.
type frame struct{ length, phase int64 } // in ns; a length of 0 is one endless window

// frameOf spreads the minutes and hours of tenants, so that not all of a fleet's
// windows begin in the same instant. Days are those of UTC.
func frameOf(w Window, tenant string) frame {
	f := frame{length: int64(w.Length())}
	if w == Minute || w == Hour {
		hash := uint64(14695981039346656037) // FNV-1a
		for i := range len(tenant) {
			hash = (hash ^ uint64(tenant[i])) * 1099511628211
		}
		f.phase = int64(hash % uint64(f.length))
	}
	return f
}

// number of the window that now is in.
func (f frame) number(now int64) int64 {
	if f.length == 0 {
		return 0
	}
	return (now - f.phase) / f.length
}

// left is how long that window still is.
func (f frame) left(now int64) time.Duration {
	if f.length == 0 {
		return 0
	}
	return time.Duration(f.length - (now-f.phase)%f.length)
}
