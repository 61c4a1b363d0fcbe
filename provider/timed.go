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

		silence := startSilence(t.Limit.FirstToken, func() { cancel(Fail(llm.OutcomeFirstTokenTimeout, nil)) })
		defer func() { silence.stop() }()
		for frame, err := range t.Inner.Stream(ctx, req) {
			if err != nil {
				if ctx.Err() != nil {
					err = FromContext(ctx)
				}
				yield(llm.Frame{}, err)
				return
			}
			if !frame.Progress() {
				if !yield(frame, nil) {
					return
				}
				continue
			}
			silence.stop()
			if !yield(frame, nil) {
				return
			}
			silence = startSilence(t.Limit.Idle, func() { cancel(Fail(llm.OutcomeIdleTimeout, nil)) })
		}
	}
}

func (t *Timed) withTotal(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.Limit.Total <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, t.Limit.Total, Fail(llm.OutcomeTimeout, nil))
}

// silence calls its function once when nothing has stopped it for long enough.
type silence struct{ timer *time.Timer }

func startSilence(limit time.Duration, passed func()) silence {
	if limit <= 0 {
		return silence{}
	}
	return silence{time.AfterFunc(limit, passed)}
}

func (s silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
