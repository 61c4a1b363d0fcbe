package wire

import (
	"errors"
	"testing"

	"github.com/llmbus/llmbus/llm"
	"github.com/stretchr/testify/require"
)

func TestFrames(t *testing.T) {
	answer, failed := &llm.Response{Content: "ab"}, errors.New("x")
	call := func(err error) func(Emit) (*llm.Response, error) {
		return func(emit Emit) (*llm.Response, error) {
			for _, text := range []string{"a", "", "b"} {
				frame := llm.Frame{}
				if text != "" {
					frame = llm.Frame{Type: llm.FrameDelta, Text: text}
				}
				if err := emit(frame); err != nil {
					return nil, err
				}
			}
			return answer, err
		}
	}
	var got []llm.Frame
	for frame, err := range Frames(call(nil)) {
		require.NoError(t, err)
		got = append(got, frame)
	}
	require.Equal(t, []llm.Frame{
		{Type: llm.FrameDelta, Text: "a"}, {Type: llm.FrameDelta, Text: "b"}, {Type: llm.FrameEnd, Response: answer},
	}, got)

	var last error
	for _, last = range Frames(call(failed)) {
	}
	require.Equal(t, failed, last)
	for range Frames(call(failed)) {
		break // nothing may follow
	}
}
