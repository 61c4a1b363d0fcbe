package wire

import (
	"errors"
	"iter"

	"github.com/llmbus/llmbus/llm"
)

// Emit hands out a piece of an answer. A frame without a type is no piece and
// goes nowhere. The error is ErrLeft.
type Emit func(llm.Frame) error

// ErrLeft says that the reader of a stream has left its loop.
var ErrLeft = errors.New("the reader has left")

// discard is the Emit of an answer that is wanted whole.
func discard(llm.Frame) error { return nil }

// Frames is the stream of a call that emits the pieces of an answer and then
// returns the whole of it.
func Frames(call func(Emit) (*llm.Response, error)) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		answer, err := call(func(f llm.Frame) error {
			if f.Type != "" && !yield(f, nil) {
				return ErrLeft
			}
			return nil
		})
		switch {
		case errors.Is(err, ErrLeft):
		case err != nil:
			yield(llm.Frame{}, err)
		default:
			yield(llm.Frame{Type: llm.FrameEnd, Response: answer}, nil)
		}
	}
}
