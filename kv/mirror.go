package kv

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"
)

// MirrorConfig holds the optional settings of a Mirror.
type MirrorConfig struct {
	Interval time.Duration  // between two re-reads; 0 means 5 s
	OnChange func([]Change) // see Mirror
	Log      *slog.Logger   // nil logs nothing
}

// Mirror is a local copy of one bucket. Its readers are safe for concurrent
// use, never wait and never allocate.
//
// OnChange is called by Run with every change, in order, once the mirror
// shows it: one change for a push, and all of them at once for a snapshot. It
// may read the mirror; while it runs, no later change is seen.
type Mirror struct {
	bucket   *Bucket
	interval time.Duration
	onChange func([]Change)
	log      *slog.Logger

	entries atomic.Pointer[map[string]*Entry]
	base    time.Time     // origin of until
	until   atomic.Int64  // fresh until then, in ns since base; 0: not fresh
	epoch   atomic.Uint64 // one for each connection to a server
	results chan result
	ready   chan struct{}
}

// NewMirror makes a mirror of a bucket that republishes its changes. It is
// empty and not fresh until Run.
func NewMirror(b *Bucket, c MirrorConfig) (*Mirror, error) {
	if b.changes == "" {
		return nil, fmt.Errorf("mirror %s: %w", b.name, ErrNotMirrored)
	}
	m := &Mirror{bucket: b, interval: c.Interval, onChange: c.OnChange, log: c.Log,
		base: time.Now(), results: make(chan result), ready: make(chan struct{})}
	if m.interval <= 0 {
		m.interval = 5 * time.Second
	}
	if m.onChange == nil {
		m.onChange = func([]Change) {}
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.log = m.log.With("bucket", b.name)
	m.entries.Store(&map[string]*Entry{})
	return m, nil
}

// Get returns what the mirror has for the key. Whether that is to be trusted
// is for Fresh to say.
func (m *Mirror) Get(key string) (Entry, bool) {
	if e := (*m.entries.Load())[key]; e != nil {
		return *e, true
	}
	return Entry{}, false
}

// All yields the entries of one instant in no order.
func (m *Mirror) All() iter.Seq[Entry] {
	entries := *m.entries.Load()
	return func(yield func(Entry) bool) {
		for _, e := range entries {
			if !yield(*e) {
				return
			}
		}
	}
}

// Fresh reports whether the mirror follows the bucket: connected, read as a
// whole since the connection began, and again within the last three intervals.
func (m *Mirror) Fresh() bool { return int64(time.Since(m.base)) < m.until.Load() }

// Ready is closed when the mirror has been fresh for the first time.
func (m *Mirror) Ready() <-chan struct{} { return m.ready }

// Refresh reads the bucket now and returns once the mirror shows what it read.
// It needs Run, and waits no longer than ctx.
func (m *Mirror) Refresh(ctx context.Context) error {
	if !m.bucket.conn.IsConnected() {
		return fmt.Errorf("refresh %s: not connected", m.bucket.name)
	}
	r := m.readNow(ctx)
	if r.err != nil {
		return r.err
	}
	r.applied = make(chan error, 1)
	select {
	case m.results <- r:
	case <-ctx.Done():
		return fmt.Errorf("refresh %s: %w", m.bucket.name, context.Cause(ctx))
	}
	select {
	case err := <-r.applied:
		return err
	case <-ctx.Done():
		return fmt.Errorf("refresh %s: %w", m.bucket.name, context.Cause(ctx))
	}
}

// result is the end of one read.
type result struct {
	snapshot
	err     error
	epoch   uint64     // in which the read began
	applied chan error // told what came of it; nil: nobody asks
}

func (m *Mirror) readNow(ctx context.Context) result {
	r := result{epoch: m.epoch.Load()}
	r.snapshot, r.err = m.bucket.read(ctx)
	if r.err == nil && !r.pushed { // somebody has changed the bucket
		r.err = fmt.Errorf("mirror %s: %w", m.bucket.name, ErrNotMirrored)
	}
	return r
}
