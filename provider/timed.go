package provider

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// Timeouts bound one call. Zero is no limit. (The time to connect is bounded
// by the adapter's transport, which alone can see it.)
type Timeouts struct {
	FirstToken time.Duration // streams: until the first sign of the model's work
	Idle       time.Duration // streams: between two signs of the model's work
	Total      time.Duration // until the whole answer is there
}

// Timed puts limits around the calls of an adapter. Only text, reasoning and
// tool-call pieces re-arm the first-token and idle limits; what merely shows
// that the connection lives does not. The time that a reader takes over a frame
// is not counted against the provider, but for Total.
type Timed struct {
	Inner llm.Completer
	Limit Timeouts
}

var _ llm.Completer = (*Timed)(nil)

// Complete calls the adapter and fails with OutcomeTimeout when Total passes.
func (t *Timed) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	ctx, cancel := t.withTotal(ctx)
	defer cancel()
	resp, err := t.Inner.Complete(ctx, req)
	if err != nil && ctx.Err() != nil {
		return nil, FromContext(ctx)
	}
	return resp, err
}

// Stream calls the adapter and cuts the stream with the limit that was passed.
func (t *Timed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		ctx, cancelTotal := t.withTotal(ctx)
		defer cancelTotal()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)

		silent := silence{cancel: cancel, idle: t.Limit.Idle}
		silent.start(t.Limit.FirstToken)
		defer silent.end()
		for frame, err := range t.Inner.Stream(ctx, req) {
			if err != nil {
				if ctx.Err() != nil {
					err = FromContext(ctx)
				}
				yield(llm.Frame{}, err)
				return
			}
			progress := frame.Progress()
			if progress {
				silent.pause()
			}
			if !yield(frame, nil) {
				return
			}
			if progress {
				silent.again()
			}
		}
	}
}

func (t *Timed) withTotal(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.Limit.Total <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, t.Limit.Total, Fail(llm.OutcomeTimeout, nil))
}

// silence cancels a stream in which nothing happens for too long. It has two
// timers in all, one until the first token and one for every gap after it. That
// one is not set anew by a frame, which would wake a thread: when it fires too
// early it looks how much of the gap is left.
type silence struct {
	cancel context.CancelCauseFunc
	idle   time.Duration
	first  *time.Timer // nil where there is no limit

	mu    sync.Mutex
	gap   *time.Timer // nil before the first token
	due   time.Time   // when the gap is too long; zero while the reader has a frame
	ended bool
}

func (s *silence) start(limit time.Duration) {
	if limit > 0 {
		s.first = time.AfterFunc(limit, func() { s.cancel(Fail(llm.OutcomeFirstTokenTimeout, nil)) })
	}
}

// pause is called with the first token and at the end of each gap.
func (s *silence) pause() {
	if s.first != nil {
		s.first.Stop()
		s.first = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Time{}
}

// again begins a gap.
func (s *silence) again() {
	if s.idle <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Now().Add(s.idle)
	if s.gap == nil {
		s.gap = time.AfterFunc(s.idle, s.late)
	}
}

// late is called no later than a gap is too long.
func (s *silence) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.idle
	if !s.due.IsZero() {
		left = time.Until(s.due)
	}
	switch {
	case s.ended:
	case left <= 0:
		s.cancel(Fail(llm.OutcomeIdleTimeout, nil))
	default:
		s.gap.Reset(left)
	}
}

func (s *silence) end() {
	s.pause()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; s.gap != nil {
		s.gap.Stop()
	}
}
