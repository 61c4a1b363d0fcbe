package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

// awaitReply reads on after a gap and shows nothing, until the reply comes or
// the worker falls silent. A message that says there is no reply is lost's.
func (s *session) awaitReply(ctx context.Context, lost error) error {
	for {
		wait, cancel := context.WithTimeoutCause(ctx, s.silence, stream.ErrSilent)
		_, err := s.next(wait)
		cause := context.Cause(wait)
		cancel()
		switch {
		case err == nil, errors.Is(err, errReconnected):
		case errors.Is(err, errReplied):
			return err
		case cause != nil:
			return fmt.Errorf("%w: %w", lost, cause)
		default:
			return fmt.Errorf("%w: %w", lost, err)
		}
	}
}

// repair ends a stream with the reply, which came although no end frame did.
func (s *session) repair() error {
	resp, err := decodeReply(s.reply)
	s.reply = nil
	if err != nil {
		return err
	}
	missing, ok := s.whole.Missing(resp.Content)
	calls := s.whole.Calls()
	if !ok || len(calls) > 0 && !slices.Equal(calls, resp.ToolCalls) {
		return llm.Errorf(llm.CodeInterrupted, "frames were lost, and what was shown is not the beginning of the answer")
	}
	var frames []llm.Frame
	if missing != "" {
		frames = append(frames, llm.Frame{Type: llm.FrameDelta, Text: missing})
	}
	if len(calls) == 0 {
		for i, c := range resp.ToolCalls {
			frames = append(frames, llm.Frame{Type: llm.FrameToolCall, Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
	}
	for _, f := range append(frames, llm.Frame{Type: llm.FrameEnd, Response: resp}) {
		s.last.Seq++
		f.Seq, f.Attempt = s.last.Seq, s.last.Attempt
		if !s.show(f) {
			return errLeft
		}
	}
	return nil
}
