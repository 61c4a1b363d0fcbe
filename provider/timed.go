package provider

import (
	"context"
	"iter"
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
		silent.start(t.Limit.FirstToken, llm.OutcomeFirstTokenTimeout)
		defer silent.stop()
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
				silent.stop()
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
// timers in all, one until the first token and one for every gap after it.
type silence struct {
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer // runs or is stopped; nil where there is no limit
	armed  bool        // timer is the one for gaps
}

func (s *silence) start(limit time.Duration, outcome llm.Outcome) {
	if limit > 0 {
		s.timer = time.AfterFunc(limit, func() { s.cancel(Fail(outcome, nil)) })
	}
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *silence) again() {
	if s.armed {
		s.timer.Reset(s.idle)
		return
	}
	s.timer = nil
	s.start(s.idle, llm.OutcomeIdleTimeout)
	s.armed = s.timer != nil
}
