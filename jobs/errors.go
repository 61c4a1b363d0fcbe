package jobs

import (
	"context"
	"errors"

	"github.com/llmbus/llmbus/llm"
)

var (
	// ErrNoStreams means that no worker has made the streams yet.
	ErrNoStreams = errors.New("the streams of jobs are not there; has a worker run on this NATS?")

	// ErrUnknownJob means that no stream holds a job of that id.
	ErrUnknownJob = errors.New("there is no such job")

	errTooLarge = errors.New("larger than a message may be")
	errStopping = llm.Errorf(llm.CodeInterrupted, "the worker is shutting down")
)

// terminal makes of an error of the Completer what is stored. The text of one
// that it should not return stays here, since nobody knows what is in it.
func terminal(ctx context.Context, err error) *llm.Error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		if e, ok := errors.AsType[*llm.Error](context.Cause(ctx)); ok {
			return e
		}
		return llm.ErrInterrupted
	}
	return llm.Errorf(llm.CodeInternal, "the worker made a mistake; its log tells more")
}
