package kv

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	directTimeout = 250 * time.Millisecond // for a direct read that a request waits for
	directPause   = time.Second            // after one failed, before the next
)

// Flip is a flag that has changed what it switches. A flag that is not set is
// on, and has revision 0.
type Flip struct{ Old, New Flag }

// FlagsConfig holds the optional settings of Flags.
type FlagsConfig struct {
	Interval time.Duration // between two re-reads; 0 means 5 s
	Log      *slog.Logger  // nil logs nothing

	// OnChange is called by Run with every new set and what it flips, in order.
	// The flags found at the start are no flips. It must not block: no later flag
	// is seen while it runs.
	OnChange func(flags *FlagSet, flips []Flip)
}

// Flags gives each request the kill switches of its instant. It is safe for
// concurrent use.
type Flags struct {
	mirror   *Mirror
	onChange func(*FlagSet, []Flip)
	log      *slog.Logger
	set      atomic.Pointer[FlagSet]

	mu      sync.Mutex
	flight  *flight   // the direct read under way
	pausing time.Time // no direct read until then
}

// flight is one direct read that any number of requests wait for.
type flight struct {
	done chan struct{}
	err  error
}

// NewFlags makes Flags over the flags bucket. Until Run, nothing is off and
// Current is degraded.
func NewFlags(b *Bucket, c FlagsConfig) (*Flags, error) {
	f := &Flags{onChange: c.OnChange, log: c.Log}
	if f.onChange == nil {
		f.onChange = func(*FlagSet, []Flip) {}
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.set.Store(newFlagSet(nil))
	var err error
	f.mirror, err = NewMirror(b, MirrorConfig{Interval: c.Interval, OnChange: f.changed, Log: c.Log})
	return f, err
}

// Run follows the bucket until ctx ends or the connection is closed for good.
func (f *Flags) Run(ctx context.Context) error { return f.mirror.Run(ctx) }

// Ready is closed when the flags have been read for the first time.
func (f *Flags) Ready() <-chan struct{} { return f.mirror.Ready() }

// Current returns the flags as they are now. While the mirror follows the
// bucket that is one atomic load. Otherwise the bucket is read directly, within
// 250 ms and once for all who ask meanwhile. If that fails too, the last known
// flags are returned, degraded is true, and no direct read is tried for a second.
func (f *Flags) Current(ctx context.Context) (flags *FlagSet, degraded bool) {
	if f.mirror.Fresh() {
		return f.set.Load(), false
	}
	err := f.direct(ctx)
	return f.set.Load(), err != nil
}

// direct has the mirror read the bucket, or waits for another request's read.
func (f *Flags) direct(ctx context.Context) error {
	f.mu.Lock()
	if time.Now().Before(f.pausing) {
		f.mu.Unlock()
		return errPausing
	}
	if fl := f.flight; fl != nil {
		f.mu.Unlock()
		select {
		case <-fl.done:
			return fl.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	fl := &flight{done: make(chan struct{})}
	f.flight = fl
	f.mu.Unlock()

	// Others wait for this read, so that it must outlive the request that began it.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), directTimeout)
	defer cancel()
	fl.err = f.mirror.Refresh(bounded)
	f.mu.Lock()
	f.flight = nil
	if fl.err != nil {
		f.pausing = time.Now().Add(directPause)
	}
	f.mu.Unlock()
	close(fl.done)
	return fl.err
}

// changed parses the mirror anew. Malformed keys and values of a change are
// logged by key only: a value may hold anything.
func (f *Flags) changed(changes []Change) {
	flags := make([]Flag, 0, 8)
	for e := range f.mirror.All() {
		flags = append(flags, entryFlag(e))
	}
	now, before := newFlagSet(flags), f.set.Load()
	f.report(now, changes)
	f.set.Store(now)
	var flips []Flip
	select {
	case <-f.mirror.Ready():
		flips = flipped(before, now)
	default:
	}
	f.onChange(now, flips)
}

func (f *Flags) report(now *FlagSet, changes []Change) {
	for _, c := range changes {
		key := c.Entry.Key
		switch flag, known := now.flags[key]; {
		case c.Op != OpPut:
		case !known:
			f.log.Warn("flag has no effect: its key names nothing", "key", key, "revision", c.Entry.Revision)
		case flag.Unrecognised:
			f.log.Warn("flag counts as off: its value is neither on nor off", "key", key, "revision", c.Entry.Revision)
		}
	}
}

// flipped compares two sets, in the order of keys.
func flipped(before, now *FlagSet) (flips []Flip) {
	keys := maps.Clone(before.flags)
	maps.Copy(keys, now.flags)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		o, n := before.orOn(key), now.orOn(key)
		if o.On != n.On || o.Now != n.Now {
			flips = append(flips, Flip{Old: o, New: n})
		}
	}
	return flips
}

func (s *FlagSet) orOn(key string) Flag {
	if f, set := s.flags[key]; set {
		return f
	}
	return Flag{Key: key, On: true}
}
