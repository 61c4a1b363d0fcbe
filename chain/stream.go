package chain

import (
	"context"
	"errors"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// outlet is where the frames of one request go, whichever attempt makes them.
type outlet struct {
	yield func(llm.Frame, error) bool
	gone  bool // the reader broke out of its loop
}

func (o *outlet) send(f llm.Frame) bool {
	if !o.gone {
		o.gone = !o.yield(f, nil)
	}
	return !o.gone
}

// attemptStream holds the frames of one attempt back until it is committed.
type attemptStream struct {
	*run
	out    *outlet
	target *Target
	began  time.Time
	held   []llm.Frame // text not yet released
	tools  []llm.Frame // released when the whole answer is valid
	size   int         // characters held
	first  time.Time   // when the first text came
}

// stream is the call of a streamed request.
func (r *run) stream(ctx context.Context, t *Target, out *outlet) (*llm.Response, error) {
	s := &attemptStream{run: r, out: out, target: t, began: time.Now()}
	timed := r.timed(ctx, t)
	for f, err := range timed.Stream(ctx, r.attemptRequest(t)) {
		switch {
		case err != nil:
			return nil, err
		case f.Type == llm.FrameEnd:
			return s.end(f.Response)
		}
		s.sawProgress(&f)
		if !s.take(f) {
			return nil, provider.Fail(llm.OutcomeCancelled, nil)
		}
	}
	return nil, provider.Fail(llm.OutcomeUnavailable, errNoEnd)
}

// sawProgress books the time of the first token and how much has come.
func (s *attemptStream) sawProgress(f *llm.Frame) {
	s.received += len(f.Text) + len(f.Arguments)
	if booked := &s.attempts[len(s.attempts)-1]; booked.FirstTokenMS == 0 && f.Progress() {
		booked.FirstTokenMS = max(1, time.Since(s.began).Milliseconds())
	}
}

// take holds or forwards one frame. It reports whether the reader is there.
func (s *attemptStream) take(f llm.Frame) bool {
	switch {
	case f.Type == llm.FrameToolCall:
		s.tools = append(s.tools, f)
		return true
	case !f.Visible():
		return true
	case s.visible:
		return s.forward(f)
	}
	if s.held = append(s.held, f); len(s.held) == 1 {
		s.first = time.Now()
	}
	s.size += len(f.Text)
	if s.req.JSONSchema != nil || !s.feature.Commit.reached(s.size, time.Since(s.first)) {
		return true
	}
	return s.commit()
}

// reached reports whether enough of a stream has come to commit to it.
func (c Commit) reached(size int, age time.Duration) bool {
	if c.Characters <= 0 && c.After <= 0 {
		return true
	}
	return c.Characters > 0 && size >= c.Characters || c.After > 0 && age >= c.After
}

// commit releases what was held. From here on there is no silent change of
// target.
func (s *attemptStream) commit() bool {
	if !s.forward(llm.Frame{Type: llm.FrameStart, Provider: s.target.Provider, Model: s.target.Model}) {
		return false
	}
	for i := range s.held {
		if !s.forward(s.held[i]) {
			return false
		}
		s.visible = s.visible || s.held[i].Visible()
	}
	s.held = nil
	return true
}

func (s *attemptStream) forward(f llm.Frame) bool {
	f.Attempt = len(s.attempts)
	s.reading = true
	there := s.out.send(f)
	s.reading = false
	return there
}

// end judges the whole answer before the rest of it is released.
func (s *attemptStream) end(resp *llm.Response) (*llm.Response, error) {
	if resp == nil {
		return nil, provider.Fail(llm.OutcomeUnavailable, errNoAnswer)
	}
	if err := s.validate(resp); err != nil {
		return resp, err
	}
	if resp.JSON != nil && s.size != len(resp.Content) { // it was repaired, and is held back whole until here
		s.held = []llm.Frame{{Type: llm.FrameDelta, Text: resp.Content}}
	}
	if !s.visible && !s.commit() {
		return nil, provider.Fail(llm.OutcomeCancelled, nil)
	}
	for _, f := range s.tools {
		if !s.forward(f) {
			return nil, provider.Fail(llm.OutcomeCancelled, nil)
		}
	}
	return resp, nil
}

// interrupted decides about a stream that broke after its text was seen.
func (r *run) interrupted(ctx context.Context, t *Target, failure *provider.Failure) *llm.Error {
	switch failure.Outcome {
	case llm.OutcomeContentFiltered, llm.OutcomeInvalidOutput:
		return terminal(failure) // the provider ended the answer, and said why
	case llm.OutcomeCancelled:
		if !errors.Is(failure, llm.ErrSwitchedOff) {
			return terminal(failure)
		}
	}
	r.emit(EventStreamInterrupted, t)
	broken := llm.Errorf(llm.CodeInterrupted, "the answer of %s broke off after text was sent (%s); what was sent is incomplete", t.Provider, failure.Outcome)
	if r.feature.OnInterrupt == InterruptRestart && r.failover && len(r.queue) > 0 {
		r.broken = broken
		return nil
	}
	if r.feature.OnInterrupt == InterruptQueue {
		broken.Job = r.env.handOver(ctx, r.req)
	}
	return broken
}
