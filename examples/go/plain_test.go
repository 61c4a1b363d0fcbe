package plain

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// connect needs NATS_URL and the rest of what examples/run sets.
func connect(t *testing.T, variable string) (context.Context, *nats.Conn) {
	t.Helper()
	nc, err := nats.Connect(os.Getenv(variable))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx, nc
}

func hello() map[string]any { return map[string]any{"prompt": "hello"} }

// codeOf is the code of the error that asking for the feature ends in.
func codeOf(ctx context.Context, nc *nats.Conn, feature string) string {
	_, err := Ask(ctx, nc, feature, hello())
	if failed, ok := errors.AsType[*Failed](err); ok {
		return failed.Code
	}
	return ""
}

func TestARequestAndItsReply(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	answer, err := Ask(ctx, nc, "support", hello())
	require.NoError(t, err)
	require.Equal(t, "model", answer.ServedBy)
	require.NotEmpty(t, answer.Content)
}

func TestStreams(t *testing.T) {
	for name, replyOnly := range map[string]bool{"on its own subject": false, "on the inbox": true} {
		t.Run(name, func(t *testing.T) {
			ctx, nc := connect(t, "NATS_URL")
			var shown []string
			answer, err := Stream(ctx, nc, "support", NewID(), hello(), 10*time.Second, replyOnly, func(text string) { shown = append(shown, text) })
			require.NoError(t, err)
			require.Greater(t, len(shown), 5)
			require.Equal(t, answer.Content, shown[len(shown)-1])
		})
	}
}

func TestCancel(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	// [cancel]
	id := NewID()
	_, err := Stream(ctx, nc, "slow", id, hello(), 10*time.Second, false, func(string) { _ = nc.Publish("llm.cancel."+id, nil) })
	failed, _ := errors.AsType[*Failed](err)
	require.Equal(t, "cancelled", failed.Code)
	// [end]
}

func TestAnErrorAndWhenToComeBack(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	// [error]
	_, err := Ask(ctx, nc, "limited", hello())
	failed, _ := errors.AsType[*Failed](err)
	require.Equal(t, "rate_limited", failed.Code)
	require.Positive(t, failed.RetryAfterMS)
	msg, err := nc.RequestWithContext(ctx, "llm.complete.limited", []byte(`{"prompt":"hello"}`))
	require.NoError(t, err)
	require.Equal(t, "429", msg.Header.Get("Nats-Service-Error-Code"))
	require.Regexp(t, "^[1-9]$", msg.Header.Get("Retry-After"))
	// [end]
}

func TestNoResponders(t *testing.T) {
	ctx, nc := connect(t, "NATS_EMPTY_URL")
	// [no_responders]
	_, err := Ask(ctx, nc, "support", hello())
	require.ErrorIs(t, err, nats.ErrNoResponders)
	// [end]
}

func TestAJobAndItsResult(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	// [job]
	id := NewID()
	results, err := nc.SubscribeSync("llm.results." + id)
	require.NoError(t, err)
	_, err = js.PublishMsg(ctx, &nats.Msg{Subject: "llm.jobs.support", Data: []byte(`{"prompt":"hello"}`), Header: nats.Header{"Llm-Request-Id": {id}}})
	require.NoError(t, err)
	msg, err := results.NextMsgWithContext(ctx) // it also stays in the stream LLM_RESULTS for a day
	// [end]
	require.NoError(t, err)
	answer, err := read(msg)
	require.NoError(t, err)
	require.NotEmpty(t, answer.Content)
}

func TestBreakers(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	// [breakers]
	changes, err := nc.SubscribeSync("llm.kv.breakers.>") // each change, on plain NATS
	require.NoError(t, err)
	bucket, err := js.KeyValue(ctx, "llm_breakers")
	require.NoError(t, err)
	watch, err := bucket.WatchAll(ctx) // what is stored, then each change
	require.NoError(t, err)
	// [end]
	defer watch.Stop()
	for n := 0; n == 0; n, _, _ = changes.Pending() {
		require.NotEmpty(t, codeOf(ctx, nc, "failing"))
	}
	msg, err := changes.NextMsgWithContext(ctx)
	require.NoError(t, err)
	require.Equal(t, "llm.kv.breakers.sim.sim-status-503", msg.Subject)
	for entry := range watch.Updates() {
		if entry != nil && entry.Key() == "sim.sim-status-503" {
			require.True(t, json.Valid(entry.Value()))
			return
		}
	}
}

func TestAKillSwitch(t *testing.T) {
	ctx, nc := connect(t, "NATS_URL")
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	// [kill_switch]
	flags, err := js.KeyValue(ctx, "llm_flags")
	require.NoError(t, err)
	_, err = flags.PutString(ctx, "feature.switched", "off @ann a drill")
	require.NoError(t, err)
	for codeOf(ctx, nc, "switched") != "switched_off" {
		require.NoError(t, ctx.Err())
	}
	_, err = flags.PutString(ctx, "feature.switched", "on")
	require.NoError(t, err)
	for codeOf(ctx, nc, "switched") != "" {
		require.NoError(t, ctx.Err())
	}
	// [end]
}
