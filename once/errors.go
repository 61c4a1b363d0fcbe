package once

import (
	"errors"

	"github.com/llmbus/llmbus/llm"
)

var (
	// errReleased means that the worker of a call has it no more.
	errReleased = errors.New("the call was released")

	// errAway means that the worker of a call cannot be heard.
	errAway = errors.New("the worker of the call cannot be heard")

	errGone  = errors.New("the reader has gone")
	errNoEnd = errors.New("the stream stopped without an end frame")

	errOtherBody = llm.Errorf(llm.CodeInvalidRequest, "idempotency_key was used for another request; a new request needs a new key")
	errBrokeOff  = llm.Errorf(llm.CodeInterrupted, "the worker of the answer is gone, and a part of its text was sent; what was sent is incomplete")
)

// codeReleased is what the frame of a call that was released says. It travels
// between workers only.
const codeReleased llm.Code = "released"
