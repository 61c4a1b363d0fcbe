package stream

import (
	"errors"
	"fmt"
)

var (
	// ErrTruncated means that the stream stopped without an end or error frame.
	ErrTruncated = errors.New("the stream stopped before its end")

	// ErrSilent means that neither a frame nor a ping came for too long, so that
	// the worker is gone or cannot be reached.
	ErrSilent = errors.New("the worker fell silent")

	// ErrEnded is what a Writer says to a frame after the last one.
	ErrEnded = errors.New("the stream has ended")

	errUnwritable = errors.New("the frame cannot be written")
)

// GapError means that frames are missing, so that what was read is not the
// whole answer.
type GapError struct {
	Want uint64 // the number that should have come
	Got  uint64 // the number that came; 0 when the client dropped messages before they could be read
}

// Error says which numbers did not match.
func (e *GapError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("frames from %d on were dropped, since they were not read fast enough", e.Want)
	}
	return fmt.Sprintf("frame %d came where %d was due", e.Got, e.Want)
}
