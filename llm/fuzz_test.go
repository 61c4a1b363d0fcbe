package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// FuzzDecodeRequest checks that no payload is answered with anything but an
// invalid_request, and that what is accepted is accepted again when re-encoded.
func FuzzDecodeRequest(f *testing.F) {
	for payload := range refusals {
		f.Add([]byte(payload))
	}
	full, err := json.Marshal(fullRequest())
	require.NoError(f, err)
	f.Add(full)
	f.Fuzz(func(t *testing.T, payload []byte) {
		req, err := llm.DecodeRequest(payload)
		if err != nil {
			require.ErrorIs(t, err, llm.ErrInvalidRequest)
			return
		}
		wire, err := json.Marshal(req)
		require.NoError(t, err)
		again, err := llm.DecodeRequest(wire)
		require.NoError(t, err)
		sameRequest(t, again)
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(wire), string(second))
	})
}

// FuzzFrame checks that the hand-written encoder agrees with encoding/json.
func FuzzFrame(f *testing.F) {
	f.Add("delta", "hello", "", "", 0)
	f.Add("tool_call", "", "id\u2028", "na\xffme", 3)
	f.Add("start", "<\x00\"\\>", "x", "y", -1)
	f.Fuzz(func(t *testing.T, kind, a, b, c string, index int) {
		frame := llm.Frame{Seq: 1, Attempt: index, Type: llm.FrameType(kind)}
		switch frame.Type {
		case llm.FrameStart:
			frame.Provider, frame.Model = a, b
		case llm.FrameDelta:
			frame.Text = a
		case llm.FrameToolCall:
			frame.Index, frame.ID, frame.Name, frame.Arguments = index, a, b, c
		case llm.FrameEnd, llm.FrameError, "":
			return
		}
		wire, err := frame.AppendJSON(nil)
		require.NoError(t, err)
		got, err := llm.DecodeFrame(wire)
		require.NoError(t, err)

		type plain llm.Frame
		std, err := json.Marshal(plain(frame))
		require.NoError(t, err)
		want, err := llm.DecodeFrame(std)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// FuzzDecodeFrame checks that whatever decodes also encodes and decodes to the
// same type and place.
func FuzzDecodeFrame(f *testing.F) {
	f.Add([]byte(`{"seq":1,"attempt":1,"type":"delta","text":"x"}`))
	f.Add([]byte(`{"seq":2,"type":"end","response":{"id":"1","served_by":"model"}}`))
	f.Add([]byte(`{"seq":2,"type":"error","error":{"code":"busy","message":""}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame, err := llm.DecodeFrame(payload)
		if err != nil {
			return
		}
		wire, err := frame.AppendJSON(nil)
		require.NoError(t, err)
		again, err := llm.DecodeFrame(wire)
		require.NoError(t, err)
		require.Equal(t, frame.Seq, again.Seq)
		require.Equal(t, frame.Type, again.Type)
	})
}
