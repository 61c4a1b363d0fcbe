package breaker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/llmbus/llmbus/kv"
)

// store is the fleet's side of a group: the records that all workers see and
// the leases of probes.
type store struct {
	records *kv.Bucket
	probes  *kv.Bucket
	mirror  *kv.Mirror // of records
	worker  string
	health  health
}

func newStore(c Config, worker string, log *slog.Logger, onChange func([]kv.Change)) (*store, error) {
	mirror, err := kv.NewMirror(c.Buckets.Breakers, kv.MirrorConfig{Interval: c.Interval, OnChange: onChange, Log: log})
	if err != nil {
		return nil, err
	}
	return &store{records: c.Buckets.Breakers, probes: c.Buckets.Probes, mirror: mirror, worker: worker}, nil
}

// reachable reports whether decisions are to be shared before they count.
func (s *store) reachable() bool { return s.mirror.Fresh() && !s.health.poor(time.Now()) }

// swap stores a record over the revision it was made from; 0 is none.
func (s *store) swap(ctx context.Context, key string, r Record, base uint64) (revision uint64, err error) {
	value, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("record of %s: %w", key, err)
	}
	err = s.call(ctx, func(ctx context.Context) error {
		revision, err = s.records.Update(ctx, key, value, base)
		return err
	})
	return revision, err
}

// lease takes the right to probe for ttl, in whole seconds. kv.ErrConflict
// means that somebody holds it. The call goes on when the caller goes away: a
// lease of which nobody knows would block the next.
func (s *store) lease(ctx context.Context, key string, ttl time.Duration) (revision uint64, err error) {
	err = s.call(context.WithoutCancel(ctx), func(ctx context.Context) error {
		revision, err = s.probes.Create(ctx, key, []byte(s.worker), ttl)
		return err
	})
	return revision, err
}

// release gives a lease back, unless it has run out and is another's.
func (s *store) release(ctx context.Context, key string, revision uint64) error {
	err := s.call(ctx, func(ctx context.Context) error { return s.probes.Delete(ctx, key, revision) })
	if errors.Is(err, kv.ErrConflict) {
		return nil
	}
	return err
}

// refresh has the mirror read the bucket now, and returns what it then has.
func (s *store) refresh(ctx context.Context, key string) (e kv.Entry, ok bool, err error) {
	err = s.call(ctx, s.mirror.Refresh)
	if err == nil {
		e, ok = s.mirror.Get(key)
	}
	return e, ok, err
}

// call bounds one call to KV and takes note of whether KV answers.
func (s *store) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f(ctx)
	s.health.note(err == nil || errors.Is(err, kv.ErrConflict), time.Now())
	return err
}
