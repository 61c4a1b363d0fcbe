package fake

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Provider answers by its script.
type Provider struct {
	mu      sync.Mutex
	script  func(call int, req *llm.Request) Step
	calls   []Call
	running int
	peak    int
}

var _ llm.Completer = (*Provider)(nil)

// Call is the record of one call.
type Call struct {
	Request *llm.Request
	Stream  bool
	At      time.Time
	Ended   bool  // the call has returned, or its loop was left
	Cause   error // why its context had ended before the call did, or nil
}

// New makes a provider that follows the steps in order and repeats the last.
// Without steps it answers "ok".
func New(steps ...Step) *Provider {
	p := new(Provider)
	p.Play(steps...)
	return p
}

// Func makes a provider that asks script what to do; call counts from 0.
// script may be called by many goroutines at once.
func Func(script func(call int, req *llm.Request) Step) *Provider {
	return &Provider{script: script}
}

// Play replaces the script from the next call on.
func (p *Provider) Play(steps ...Step) {
	if len(steps) == 0 {
		steps = []Step{Answer("ok")}
	}
	steps = slices.Clone(steps)
	p.mu.Lock()
	defer p.mu.Unlock()
	first := len(p.calls)
	p.script = func(call int, _ *llm.Request) Step { return steps[min(call-first, len(steps)-1)] }
}

// Complete follows the next step to its end.
func (p *Provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	step, done := p.begin(ctx, req, false)
	defer done()
	if err := step.wait(ctx); err != nil {
		return nil, err
	}
	if step.Truncate {
		return nil, provider.Fail(llm.OutcomeUnavailable, errTruncated)
	}
	if err := step.end(ctx); err != nil {
		return nil, err
	}
	return step.response(req.Model), nil
}

// Stream follows the next step frame by frame.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		step, done := p.begin(ctx, req, true)
		defer done()
		if err := step.wait(ctx); err != nil {
			yield(llm.Frame{}, err)
			return
		}
		for i, frame := range step.frames() {
			if i > 0 {
				if err := pause(ctx, step.Gap); err != nil {
					yield(llm.Frame{}, err)
					return
				}
			}
			if !yield(frame, nil) {
				return
			}
		}
		if step.Truncate {
			return
		}
		if err := step.end(ctx); err != nil {
			yield(llm.Frame{}, err)
			return
		}
		yield(llm.Frame{Type: llm.FrameEnd, Response: step.response(req.Model)}, nil)
	}
}

// Calls returns a record of all calls so far, in the order they began.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Count is the number of calls that began.
func (p *Provider) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Running is the number of calls that have begun and not ended.
func (p *Provider) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Peak is the highest number of calls that ran at once.
func (p *Provider) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

func (p *Provider) begin(ctx context.Context, req *llm.Request, stream bool) (Step, func()) {
	p.mu.Lock()
	call, script := len(p.calls), p.script
	p.calls = append(p.calls, Call{Request: req, Stream: stream, At: time.Now()})
	p.running++
	p.peak = max(p.peak, p.running)
	p.mu.Unlock()

	return script(call, req), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running--
		p.calls[call].Ended = true
		p.calls[call].Cause = context.Cause(ctx)
	}
}

var errTruncated = errors.New("the script cuts the answer")

// wait is the part of a step before its first frame.
func (s *Step) wait(ctx context.Context) error {
	if err := pause(ctx, s.Wait); err != nil {
		return err
	}
	if s.Until == nil {
		return nil
	}
	select {
	case <-s.Until:
		return nil
	case <-ctx.Done():
		return provider.FromContext(ctx)
	}
}

// end is the part of a step after its last frame.
func (s *Step) end(ctx context.Context) error {
	if s.Hang {
		<-ctx.Done()
		return provider.FromContext(ctx)
	}
	return s.Err
}

// pause lets d pass, or fails when the context ends first or has ended.
func pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return provider.FromContext(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return provider.FromContext(ctx)
	}
}
