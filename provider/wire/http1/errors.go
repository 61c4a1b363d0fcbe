package http1

import "errors"

// BadAnswer says that the peer has begun to answer and that its answer, up to the
// body, cannot be used. Its text may quote the peer.
type BadAnswer struct{ Err error }

func (e *BadAnswer) Error() string { return "reading the head of the answer: " + e.Err.Error() }
func (e *BadAnswer) Unwrap() error { return e.Err }

var (
	errHeadTooLong = errors.New("the head of the answer is too long")
	errNoPlace     = errors.New("the URL must be http or https and name a host")
)
