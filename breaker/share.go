package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/llmbus/llmbus/kv"
)

const (
	patience = time.Second // for one call to KV
	retry    = time.Second // after KV has failed, before the same key is tried again

	lastWords = 2 * time.Second // to share what is left when Run ends
)

// shareAll writes pending views, each when it is due, until ctx ends and then
// what is left.
func (g *Group) shareAll(ctx context.Context) {
	detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var wg sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(g.shareDue(detached, &wg))
		select {
		case <-timer.C:
		case <-g.wake:
		case <-ctx.Done():
			defer time.AfterFunc(lastWords, cancel).Stop()
			for range 2 { // what is under way may leave something, such as a lease
				g.shareDue(detached, &wg)
				wg.Wait()
			}
			return
		}
	}
}

// shareDue starts to share what is due and returns when to look again. While
// KV is out of reach nothing is tried; afterwards each key is due at a random
// instant, so that the fleet does not come all at once.
func (g *Group) shareDue(ctx context.Context, wg *sync.WaitGroup) time.Duration {
	now, again := time.Now(), time.Hour
	for _, b := range g.all() {
		wait, due := b.takeDue(now, g.store.mirror.Fresh())
		again = min(again, wait)
		if due {
			wg.Go(func() { b.share(ctx) })
		}
	}
	return again
}

// takeDue reserves the breaker for one goroutine if it has something to share.
func (b *Breaker) takeDue(now time.Time, fresh bool) (wait time.Duration, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.view.Load()
	if b.sharing || !v.pending && len(b.leases) == 0 {
		return time.Hour, false
	}
	if !fresh {
		if v.pending { // decided alone: tell the listener at least
			b.tell(*v)
		}
		b.due = now.Add(spreadOut(retry))
	}
	if wait = b.due.Sub(now); wait > 0 {
		return wait, false
	}
	b.sharing = true
	return time.Hour, true
}

// share writes the pending view and gives leases back. The order matters: a
// lease that is free says that the result of its probe is known.
func (b *Breaker) share(ctx context.Context) {
	err := b.write(ctx)
	b.mu.Lock()
	leases := b.leases
	b.leases = nil
	b.mu.Unlock()
	if err == nil {
		for _, lease := range leases {
			err = errors.Join(err, b.group.store.release(ctx, b.key, lease))
		}
	}
	b.mu.Lock()
	b.sharing = false
	if err != nil { // the leases run out by themselves
		b.due = time.Now().Add(spreadOut(retry))
		if v := b.view.Load(); v.pending {
			b.tell(*v)
		}
	}
	b.mu.Unlock()
	b.group.kick()
}

// write shares the view by compare-and-swap, again if it lost against a view
// that it is newer than, until there is nothing to share.
func (b *Breaker) write(ctx context.Context) error {
	for range 4 { // two conflicts in a row are rare
		v := b.view.Load()
		if !v.pending {
			return nil
		}
		revision, err := b.group.store.swap(ctx, b.key, v.record(time.Now()), v.revision)
		switch {
		case err == nil:
			b.apply(shared{v.generation, revision})
		case errors.Is(err, kv.ErrConflict):
			if err := b.reread(ctx, v.revision); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return kv.ErrConflict
}

// reread learns what won against the revision that was the base.
func (b *Breaker) reread(ctx context.Context, base uint64) error {
	e, ok, err := b.group.store.refresh(ctx, b.key)
	if err != nil {
		return err
	}
	if !ok || e.Revision < base { // deleted, or the bucket was made anew
		b.apply(vanished{})
	}
	if ok {
		b.learn(e)
	}
	return nil
}

func spreadOut(d time.Duration) time.Duration { return d/2 + rand.N(d) }
