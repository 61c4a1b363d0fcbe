package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pushBuffer = 4096 // changes that may wait; more are lost until the next re-read

	firstRetry, lastRetry     = 25 * time.Millisecond, time.Second
	firstTimeout, lastTimeout = 500 * time.Millisecond, 2 * time.Second

	// settle is when the first snapshot of a connection is followed by a second
	// one: in a cluster, the servers need a moment to learn of the subscription.
	settle = 250 * time.Millisecond
)

// follower is one run of a Mirror; only the goroutine of Run uses it.
type follower struct {
	*Mirror
	replica
	wg      sync.WaitGroup
	timer   *time.Timer        // for the next read; stopped while one is under way
	cancel  context.CancelFunc // of the read under way
	settled bool               // this connection has had its first snapshot
	failed  bool               // the last read failed and that was logged
	retry   time.Duration
	timeout time.Duration
}

// Run follows the bucket until ctx ends, which is no error, or the connection
// is closed for good. It may be called once.
func (m *Mirror) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{Mirror: m, timer: time.NewTimer(0), cancel: func() {},
		replica: newReplica(*m.entries.Load())}
	defer f.wg.Wait()
	defer cancel()
	defer m.until.Store(0)
	defer f.timer.Stop()

	conn := m.bucket.conn
	status := conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer conn.RemoveStatusListener(status)
	pushes := make(chan *nats.Msg, pushBuffer)
	sub, err := conn.ChanSubscribe(m.bucket.changes+">", pushes)
	if err != nil {
		return fmt.Errorf("follow %s: %w", m.bucket.name, err)
	}
	defer func() { _ = sub.Unsubscribe() }()

	f.connection(ctx, conn.Status())
	return f.loop(ctx, status, pushes)
}

func (f *follower) loop(ctx context.Context, status <-chan nats.Status, pushes <-chan *nats.Msg) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case msg := <-pushes:
			f.pushed(msg)
		case s := <-status:
			if s == nats.CLOSED {
				return fmt.Errorf("follow %s: %w", f.bucket.name, nats.ErrConnectionClosed)
			}
			f.connection(ctx, s)
		case <-f.timer.C:
			if f.bucket.conn.IsConnected() {
				f.read(ctx)
			} else {
				f.timer.Reset(lastRetry)
			}
		case r := <-f.results:
			f.finished(r)
		}
	}
}

// connection starts over with whatever connection there is now: the pushes of
// the time between are lost.
func (f *follower) connection(ctx context.Context, s nats.Status) {
	f.until.Store(0)
	f.epoch.Add(1)
	f.cancel()
	f.settled = false
	f.retry, f.timeout = firstRetry, firstTimeout
	f.timer.Stop()
	if s == nats.CONNECTED {
		f.read(ctx)
	} else {
		f.timer.Reset(lastRetry)
	}
}

// read begins a read beside the loop, so that pushes are seen meanwhile.
func (f *follower) read(run context.Context) {
	f.cancel()
	ctx, cancel := context.WithTimeout(run, f.timeout)
	f.cancel = cancel
	f.wg.Go(func() {
		defer cancel()
		select {
		case f.results <- f.readNow(ctx):
		case <-run.Done():
		}
	})
}

func (f *follower) pushed(msg *nats.Msg) {
	u, ok := parse(msg)
	if !ok {
		return
	}
	u.Key = strings.TrimPrefix(msg.Subject, f.bucket.changes)
	u.Received = time.Now()
	f.show(f.push(u))
}

// finished applies a snapshot and plans the next one.
func (f *follower) finished(r result) {
	var changes []Change
	if r.err == nil {
		changes, r.err = f.adopt(r.snapshot, time.Now())
		f.show(changes)
	}
	if r.epoch == f.epoch.Load() {
		f.plan(r)
	}
	if r.applied != nil {
		r.applied <- r.err
	}
}

// plan takes note of a read of this connection.
func (f *follower) plan(r result) {
	if errors.Is(r.err, errMinority) { // the majority may change what nobody here hears of
		f.until.Store(0)
	}
	if r.err != nil {
		if !f.failed {
			f.failed = true
			f.log.Warn("re-read failed", "error", r.err)
		}
		f.timer.Reset(jitter(f.retry))
		f.retry, f.timeout = min(2*f.retry, lastRetry), min(2*f.timeout, lastTimeout)
		return
	}
	if f.failed {
		f.failed = false
		f.log.Info("re-read works again")
	}
	f.retry, f.timeout = firstRetry, firstTimeout
	f.until.Store(max(f.until.Load(), int64(r.started.Add(3*f.interval).Sub(f.base))))
	select {
	case <-f.ready:
	default:
		close(f.ready)
	}
	wait := f.interval
	if !f.settled {
		f.settled, wait = true, min(settle, wait)
	}
	f.timer.Reset(jitter(wait))
}

// show makes the replica visible and tells of its changes.
func (f *follower) show(changes []Change) {
	if len(changes) == 0 {
		return
	}
	entries := f.replica.entries
	f.Mirror.entries.Store(&entries)
	f.onChange(changes)
}

// jitter spreads d over 90 to 110 percent, so that a fleet does not read in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
