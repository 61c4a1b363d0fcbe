package once

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// state of a record.
type state string

const (
	running state = "running"
	done    state = "done"
)

// record is what the bucket holds of a key.
type record struct {
	State    state         `json:"state"`
	Call     string        `json:"call"`   // token of the call, unguessable
	Worker   string        `json:"worker"` // who makes or made it
	Body     string        `json:"body"`   // digest of what was asked
	Response *llm.Response `json:"response,omitempty"`
	Error    *llm.Error    `json:"error,omitempty"`

	revision uint64
}

// recordKey has the tenant first, so that permissions can be given by tenant.
func recordKey(req *llm.Request) string {
	return strings.Join([]string{subjects.Escape(req.Tenant), subjects.Escape(req.Feature), subjects.Escape(req.IdempotencyKey)}, ".")
}

// ended is what the record of a call becomes.
func (r record) ended(f fate) record {
	r.State, r.Response, r.Error = done, f.response, f.err
	return r
}

const (
	stepWithin  = 2 * time.Second        // one exchange with the bucket
	reachWithin = 5 * time.Second        // the bucket must be reached within, elections included
	stepPause   = 100 * time.Millisecond // before trying again
	keepWithin  = time.Second            // an answer waits so long for its record
	keepFor     = time.Minute            // and is tried to be kept for so long
	lagPause    = 10 * time.Millisecond  // for a replica that has not caught up
)

// put writes a record over the given revision; 0 means that there is none.
func (o *Once) put(ctx context.Context, key string, r *record, over uint64) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	revision, err := o.cfg.Requests.Update(ctx, key, value, over)
	if err == nil {
		r.revision = revision
	}
	return err
}

func (o *Once) get(ctx context.Context, key string) (*record, error) {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	e, err := o.cfg.Requests.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	r := &record{revision: e.Revision}
	if json.Unmarshal(e.Value, r) != nil || r.State != running && r.Response == nil && r.Error == nil {
		return nil, errUnreadable
	}
	return r, nil
}

var errUnreadable = llm.Errorf(llm.CodeInternal, "the record of this idempotency_key cannot be read; use another key")

// claim writes mine over the given revision, or returns the record that is
// there instead. A write whose answer was lost is recognised by its token. Any
// replica can say what is there, also while none leads and takes writes.
func (o *Once) claim(ctx context.Context, key string, mine record, over uint64) (*record, error) {
	for began := time.Now(); ; {
		err := o.put(ctx, key, &mine, over)
		if err == nil {
			return &mine, nil
		}
		wait := stepPause
		there, lost := o.get(ctx, key)
		switch {
		case errors.Is(lost, errUnreadable):
			return nil, lost
		case errors.Is(err, kv.ErrConflict) && errors.Is(lost, kv.ErrNotFound):
			over, wait = 0, lagPause
		case lost == nil && (errors.Is(err, kv.ErrConflict) || there.revision != over):
			return there, nil
		}
		if err := o.again(ctx, began, wait); err != nil {
			return nil, err
		}
	}
}

// look reads the record of a key, and gives the bucket its time.
func (o *Once) look(ctx context.Context, key string) (*record, error) {
	for began := time.Now(); ; {
		rec, err := o.get(ctx, key)
		if err == nil || errors.Is(err, kv.ErrNotFound) || errors.Is(err, errUnreadable) {
			return rec, err
		}
		if err := o.again(ctx, began, stepPause); err != nil {
			return nil, err
		}
	}
}

// again waits before the next try, unless the bucket has had its time.
func (o *Once) again(ctx context.Context, began time.Time, wait time.Duration) error {
	if ctx.Err() == nil && time.Since(began) < reachWithin && pause(ctx, wait) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := llm.Errorf(llm.CodeUnavailable, "the record of this idempotency_key is out of reach, and without it the call might be made twice")
	e.RetryAfterMS, e.Degraded = time.Second.Milliseconds(), true
	return e
}

// free removes the record at that revision. What fails here is made good by the
// next request with the key, which finds no call behind the record.
func (o *Once) free(ctx context.Context, key string, revision uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepWithin)
	defer cancel()
	if err := o.cfg.Requests.Delete(ctx, key, revision); err != nil {
		o.cfg.Log.Warn("idempotency record not removed", "error", err)
	}
}

// keep writes the end of a call over its claim, and tries until ctx ends. A
// conflict with the claim still in place is one with an earlier try, which may
// come through or be lost with its leader.
func (o *Once) keep(ctx context.Context, key string, end record, over uint64) error {
	for {
		err := o.put(ctx, key, &end, over)
		if err == nil {
			return nil
		}
		if errors.Is(err, kv.ErrConflict) {
			there, lost := o.get(ctx, key)
			switch {
			case errors.Is(lost, kv.ErrNotFound) || lost == nil && there.Call != end.Call:
				return err
			case lost == nil && there.State == done:
				return nil
			}
		}
		if !pause(ctx, stepPause) {
			return err
		}
	}
}

// pause reports whether the context is still alive after d.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
