package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Waiting is a job in the queue: not yet taken, in hand, or put off.
type Waiting struct {
	ID        string        `json:"id"`
	Feature   string        `json:"feature"`
	Tenant    string        `json:"tenant,omitempty"`
	Published time.Time     `json:"published"`
	Tries     int           `json:"tries"`           // that failed and are counted
	Waits     int           `json:"waits,omitempty"` // that failed and are not
	Last      llm.Code      `json:"last,omitempty"`  // how the last try ended
	Cancelled bool          `json:"cancelled,omitempty"`
	Replay    int           `json:"replay,omitempty"`
	Attempts  []llm.Attempt `json:"attempts,omitempty"`

	key string
}

// Of says whose jobs are meant. An empty field is any.
type Of struct{ Feature, Tenant string }

func (o Of) has(l *label) bool {
	return (o.Feature == "" || o.Feature == l.feature) && (o.Tenant == "" || o.Tenant == l.tenant)
}

// Waiting yields the jobs in the queue, the oldest first.
func (s *Streams) Waiting(ctx context.Context, of Of) iter.Seq2[*Waiting, error] {
	return func(yield func(*Waiting, error) bool) {
		for msg, err := range each(ctx, s.queue, subjects.Jobs) {
			if err != nil {
				yield(nil, err)
				return
			}
			l := labelOf(msg.Subject, msg.Header, msg.Sequence, msg.Time)
			if !of.has(&l) {
				continue
			}
			h, err := s.recall(ctx, l.key, l.replay)
			if err != nil {
				yield(nil, err)
				return
			}
			w := &Waiting{ID: l.id, Feature: l.feature, Tenant: l.tenant, Published: l.published, Tries: h.Tries, Waits: h.Waits,
				Last: h.Last, Cancelled: h.Cancelled, Replay: l.replay, Attempts: h.Attempts, key: l.key}
			if !yield(w, nil) {
				return
			}
		}
	}
}

// Dead yields the dead letters, the oldest first.
func (s *Streams) Dead(ctx context.Context, of Of) iter.Seq2[*DeadLetter, error] {
	filter := subjects.DeadLetters(of.Feature, of.Tenant)
	return func(yield func(*DeadLetter, error) bool) {
		for msg, err := range each(ctx, s.dead, filter) {
			if err != nil {
				yield(nil, err)
				return
			}
			letter := &DeadLetter{header: msg.Header, sequence: msg.Sequence}
			if json.Unmarshal(msg.Data, letter) != nil {
				continue // not one of ours
			}
			if !yield(letter, nil) {
				return
			}
		}
	}
}

// CountDead is the number of dead letters that Dead would yield.
func (s *Streams) CountDead(ctx context.Context, of Of) (int, error) {
	info, err := s.dead.Info(ctx, jetstream.WithSubjectFilter(subjects.DeadLetters(of.Feature, of.Tenant)))
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return len(info.State.Subjects), nil // one to each
}

// each reads the messages of a stream one by one, since a work queue allows no
// second consumer. What comes after it began is left out, so that it ends even
// if each message leads to another.
func each(ctx context.Context, s jetstream.Stream, filter string) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		info, err := s.Info(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for next := uint64(1); next <= info.State.LastSeq; {
			msg, err := s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(filter))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("read %s: %w", info.Config.Name, err))
				return
			}
			if msg.Sequence > info.State.LastSeq || !yield(msg, nil) {
				return
			}
			next = msg.Sequence + 1
		}
	}
}

// Result reads the stored answer of a job. An empty tenant is none or, if there
// is no such job, any.
func (s *Streams) Result(ctx context.Context, tenant, id string) (*llm.Response, error) {
	msg, err := lastOf(ctx, s.results, subjects.Result(tenant, id))
	if err == nil && msg == nil && tenant == "" {
		msg, err = lastOf(ctx, s.results, subjects.ResultOfAnyone(id))
	}
	switch {
	case err != nil:
		return nil, err
	case msg == nil:
		return nil, ErrUnknownJob
	}
	return llm.DecodeReply(msg.Data)
}

// Cancel ends a job in the queue: at once if a worker has it in hand, otherwise
// when its turn comes, before any provider is asked. It gets a dead letter.
// An empty tenant is any: the oldest job of that id is meant.
func (s *Streams) Cancel(ctx context.Context, tenant, id string) error {
	for w, err := range s.Waiting(ctx, Of{Tenant: tenant}) {
		if err != nil {
			return err
		}
		if w.ID != id {
			continue
		}
		if err := s.mark(ctx, w); err != nil {
			return err
		}
		if err := s.js.Conn().Publish(subjects.CancelOf(id, w.Tenant), nil); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, afterWord)
		defer cancel()
		return s.js.Conn().FlushWithContext(ctx)
	}
	return ErrUnknownJob
}

// mark writes the wish into the history, which a worker may change meanwhile.
func (s *Streams) mark(ctx context.Context, w *Waiting) error {
	for {
		h, err := s.recall(ctx, w.key, w.Replay)
		if err != nil {
			return err
		}
		h.Cancelled = true
		if err = s.remember(ctx, w.key, h); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

// ErrNoRequest means that a dead letter lacks the request that a replay needs.
var ErrNoRequest = errors.New("the dead letter holds no request: it was no JSON, or too large")

// Replay puts a job back into the queue, with all its tries before it, and
// removes the dead letter. To replay a letter again changes nothing.
func (s *Streams) Replay(ctx context.Context, l *DeadLetter) error {
	if l.Request == nil {
		return fmt.Errorf("job %s: %w", l.ID, ErrNoRequest)
	}
	replay := strconv.Itoa(l.Replay + 1)
	header := nats.Header{subjects.HeaderRequestID: {l.ID}, subjects.HeaderReplay: {replay}}
	for _, name := range kept {
		if v := l.header.Get(name); v != "" {
			header.Set(name, v)
		}
	}
	msg := &nats.Msg{Subject: subjects.JobOf(l.Feature, l.Tenant), Header: header, Data: l.Request}
	if _, err := s.js.PublishMsg(ctx, msg, jetstream.WithMsgID(subjects.JobKey(l.Tenant, l.ID)+".r"+replay)); err != nil {
		return fmt.Errorf("replay job %s: %w", l.ID, err)
	}
	err := s.dead.DeleteMsg(ctx, l.sequence)
	if err == nil {
		return nil
	}
	if _, gone := s.dead.GetMsg(ctx, l.sequence); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return nil
	}
	return fmt.Errorf("remove the dead letter of job %s: %w", l.ID, err)
}
