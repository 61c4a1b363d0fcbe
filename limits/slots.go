package limits

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/llmbus/llmbus/kv"
)

// slots are the records of who holds how many of a tenant's requests at once.
// A record names the worker of every slot, so that those of a dead worker can be
// taken from it.
type slots struct {
	bucket *kv.Bucket
	me     string
	dead   func(worker string) bool
}

// holders is the value of a record.
type holders struct {
	Held map[string]int64 `json:"held"`
}

func (h holders) total() (sum int64) {
	for _, n := range h.Held {
		sum += n
	}
	return sum
}

// Tries against workers that write the same record. Each time one of them has
// succeeded.
const (
	mostConflicts = 64
	conflictPause = 2 * time.Millisecond
)

// trade writes what this worker holds, by compare-and-swap. The record is
// brought in line with what the worker knows of itself, whatever it said.
func (s *slots) trade(ctx context.Context, p *pool, o order) (receipt, error) {
	for range mostConflicts {
		r, err := s.try(ctx, p.key, o)
		if !errors.Is(err, kv.ErrConflict) {
			return r, err
		}
		select {
		case <-time.After(rand.N(conflictPause)):
		case <-ctx.Done():
			return receipt{}, context.Cause(ctx)
		}
	}
	return receipt{}, errConflicts
}

func (s *slots) try(ctx context.Context, key string, o order) (receipt, error) {
	record, revision, err := s.read(ctx, key)
	if err != nil {
		return receipt{}, err
	}
	base := o.holding + o.owed
	record.Held[s.me] = base
	if record.total()+max(1, o.want) > o.limit { // somebody is short, or looks whether all are taken
		for worker := range record.Held {
			if worker != s.me && s.dead(worker) {
				delete(record.Held, worker)
			}
		}
	}
	r := receipt{granted: max(0, min(o.want, o.limit-record.total()))}
	record.Held[s.me] += r.granted
	if record.Held[s.me] == 0 {
		delete(record.Held, s.me)
	}
	r.total = record.total()
	data, err := json.Marshal(record)
	if err != nil {
		return receipt{}, err
	}
	r.seq, err = s.bucket.Update(ctx, key, data, revision)
	return r, err
}

// read reads a record. One that nobody understands counts as empty, and is
// replaced.
func (s *slots) read(ctx context.Context, key string) (holders, uint64, error) {
	e, err := s.bucket.Get(ctx, key)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return holders{}, 0, err
	}
	return parseHolders(e.Value), e.Revision, nil
}

func parseHolders(data []byte) holders {
	var h holders
	_ = json.Unmarshal(data, &h) // empty if it is none
	if h.Held == nil {
		h.Held = map[string]int64{}
	}
	for worker, n := range h.Held {
		if n <= 0 {
			delete(h.Held, worker)
		}
	}
	return h
}
