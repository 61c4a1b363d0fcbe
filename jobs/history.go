package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// history is what is remembered of a job between two tries. It holds no
// content.
type history struct {
	Replay    int           `json:"replay,omitempty"`    // the replay that it belongs to
	Tries     int           `json:"tries,omitempty"`     // that the backoff list counts
	Waits     int           `json:"waits,omitempty"`     // tries that it does not count
	Returned  uint64        `json:"returned,omitempty"`  // deliveries that a worker ended itself, in whatever way
	Cancelled bool          `json:"cancelled,omitempty"` // the next worker gives the job up
	Last      llm.Code      `json:"last,omitempty"`      // how the last try ended
	Attempts  []llm.Attempt `json:"attempts,omitempty"`  // the first of them, up to mostAttempts
	Omitted   int           `json:"omitted,omitempty"`   // further ones

	revision uint64
}

// mostAttempts bounds the history of a job that is put off for days.
const mostAttempts = 400

// add books what a try did.
func (h *history) add(e *llm.Error) {
	h.Returned++
	h.Last = e.Code
	if counted(e) {
		h.Tries++
	} else {
		h.Waits++
	}
	kept := e.Attempts[:min(len(e.Attempts), mostAttempts-len(h.Attempts))]
	h.Attempts = append(h.Attempts, kept...)
	h.Omitted += len(e.Attempts) - len(kept)
}

// lost is how many deliveries before this one ended with the death of a worker.
func (h *history) lost(delivery uint64) uint64 {
	if delivery <= h.Returned {
		return 0
	}
	return delivery - 1 - h.Returned
}

// recall reads the history of a job. One of an earlier replay is over.
func (s *Streams) recall(ctx context.Context, key string, replay int) (*history, error) {
	h := &history{Replay: replay}
	e, err := s.records.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	var found history
	if err := json.Unmarshal(e.Value, &found); err != nil {
		return nil, fmt.Errorf("history of job %s: %w", key, err)
	}
	if found.Replay == replay {
		h = &found
	}
	h.revision = e.Revision
	return h, nil
}

// remember writes the history back. kv.ErrConflict means that somebody else has
// changed it meanwhile.
func (s *Streams) remember(ctx context.Context, key string, h *history) error {
	value, err := json.Marshal(h)
	if err != nil {
		return err
	}
	h.revision, err = s.records.Update(ctx, key, value, h.revision)
	return err
}

// forget removes the history of a job that is done. What stays expires.
func (s *Streams) forget(ctx context.Context, key string, h *history) {
	if h.revision != 0 {
		_ = s.records.Delete(ctx, key, h.revision)
	}
}
