package chain

import (
	"context"
	"iter"

	"github.com/llmbus/llmbus/llm"
)

// switched refuses a request whose feature or tenant an operator has turned
// off, before anything is spent on it.
type switched struct {
	next     llm.Completer
	switches Switches
	calls    *calls
}

func (s *switched) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if err := s.check(ctx, req); err != nil {
		return nil, err
	}
	ctx, entry := s.calls.enter(ctx, req, nil)
	defer entry.leave()
	return s.next.Complete(ctx, req)
}

func (s *switched) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if err := s.check(ctx, req); err != nil {
			yield(llm.Frame{}, err)
			return
		}
		ctx, entry := s.calls.enter(ctx, req, nil)
		defer entry.leave()
		s.next.Stream(ctx, req)(yield)
	}
}

func (s *switched) check(ctx context.Context, req *llm.Request) error {
	flags, degraded := s.switches.Current(ctx)
	flag, off := flags.Off(req.Feature, req.Tenant)
	if !off {
		return nil
	}
	e := llm.Errorf(llm.CodeSwitchedOff, "%s is switched off by an operator", flag.Key)
	e.Degraded = degraded
	return e
}
