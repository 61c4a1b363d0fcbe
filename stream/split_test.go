package stream_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

const small = 512 // bytes of max_payload

func connectSmall(t *testing.T) wire {
	t.Helper()
	srv := natstest.ListenServer(t, func(o *server.Options) { o.MaxPayload = small })
	w := wire{worker: srv.Dial(), caller: srv.Dial()}
	var err error
	w.sub, err = w.caller.SubscribeSync(subject)
	require.NoError(t, err)
	flush(t, w.caller)
	return w
}

func TestLargePiecesAreSplitBetweenCharacters(t *testing.T) {
	w := connectSmall(t)
	text := strings.Repeat("日本👍\n\"", 400)
	call := llm.ToolCall{ID: "1", Name: "f", Arguments: `{"a":"` + strings.Repeat("é", 2000) + `"}`}
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	require.NoError(t, out.Write(delta(text)))
	require.NoError(t, out.Write(llm.Frame{Attempt: 1, Type: llm.FrameToolCall, ID: call.ID, Name: call.Name, Arguments: call.Arguments}))
	require.NoError(t, out.Write(end(text, call)))

	frames, err := w.read(t)
	require.NoError(t, err)
	require.Greater(t, len(frames), 10)
	var whole stream.Assembly
	named := 0
	for _, f := range frames {
		require.True(t, utf8.ValidString(f.Text))
		require.NotContains(t, f.Text, "\ufffd")
		if f.Name != "" {
			named++
		}
		whole.Add(&f)
	}
	require.Equal(t, 1, named, "id and name come once")
	last := frames[len(frames)-1].Response
	require.Empty(t, last.Content)
	whole.Complete(last)
	require.Equal(t, text, last.Content)
	require.Equal(t, []llm.ToolCall{call}, last.ToolCalls)
}

func TestTooLargeEndBecomesAnErrorWithBothSizes(t *testing.T) {
	w := connectSmall(t)
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	require.NoError(t, out.Write(delta("a")))
	big := end("a")
	big.Response.Warnings = []string{strings.Repeat("w", 600)}
	require.NoError(t, out.Write(big))
	frames, err := w.read(t)
	require.Len(t, frames, 1)
	require.ErrorIs(t, err, llm.ErrTooLarge)
	require.Regexp(t, `the end of the answer is [67]\d\d bytes, more than the 512 bytes`, err.Error())
}

func TestTooLargeErrorLosesItsAttempts(t *testing.T) {
	w := connectSmall(t)
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	failed := &llm.Error{Code: llm.CodeUnavailable, Message: "no target could serve", Attempts: make([]llm.Attempt, 20)}
	require.NoError(t, out.Write(llm.Frame{Type: llm.FrameError, Error: failed}))
	_, err := w.read(t)
	require.Equal(t, &llm.Error{Code: llm.CodeUnavailable, Message: "no target could serve"}, err)
	require.Len(t, failed.Attempts, 20, "the caller's error is not touched")
}
