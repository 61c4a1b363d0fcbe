package stream_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

// FuzzRead checks that whatever comes ends a stream with an end frame or with
// an error, and that frames are in order.
func FuzzRead(f *testing.F) {
	f.Add([]byte(first + "\n" + last))
	f.Add([]byte(first + "\n" + third))
	f.Add([]byte(`{"error":{"code":"busy"}}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, payloads []byte) {
		messages := bytes.Split(payloads, []byte("\n"))
		next := func(context.Context) (*nats.Msg, error) {
			if len(messages) == 0 {
				return nil, nats.ErrConnectionClosed
			}
			m := &nats.Msg{Data: messages[0]}
			messages = messages[1:]
			return m, nil
		}
		var assembly stream.Assembly
		var seq uint64
		ended, shown := false, false
		for frame, err := range stream.Read(t.Context(), next, 0) {
			require.False(t, ended, "nothing follows the end")
			if err != nil {
				ended = true
				continue
			}
			if seq++; frame.Seq == 1 && !shown {
				seq = 1 // begun anew by another worker
			}
			require.Equal(t, seq, frame.Seq)
			shown = shown || frame.Type == llm.FrameDelta || frame.Type == llm.FrameToolCall
			assembly.Add(&frame)
			ended = frame.Type == llm.FrameEnd
		}
		require.True(t, ended)
		require.LessOrEqual(t, len(assembly.Text()), len(payloads))
	})
}
