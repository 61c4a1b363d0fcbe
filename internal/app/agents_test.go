package app_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

// prompt asks an agent and returns all that came, in one text; empty if nobody
// listens.
func prompt(t *testing.T, nc *nats.Conn, subject, text string) string {
	t.Helper()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	require.NoError(t, err)
	defer sub.Unsubscribe() //nolint:errcheck // fails only with the connection
	require.NoError(t, nc.PublishRequest(subject, sub.Subject, []byte(text)))
	var all strings.Builder
	for {
		msg, err := sub.NextMsg(patience)
		if err != nil {
			require.ErrorIs(t, err, nats.ErrNoResponders)
			return ""
		}
		if len(msg.Data) == 0 {
			return all.String()
		}
		all.Write(msg.Data)
	}
}

func TestFeaturesAreAgents(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := joining(srv)
	env.Agents = "acme"
	p := start(t, env, echoConfig)
	nc := srv.Dial()
	require.Eventually(t, func() bool { return prompt(t, nc, "agents.prompt.llmbus.acme.default", "hello") != "" }, patience, tick)
	require.Equal(t, `{"type":"status","data":"ack"}{"type":"response","data":"echo: "}{"type":"response","data":"hello"}`,
		prompt(t, nc, "agents.prompt.llmbus.acme.default", "hello"))

	_, err := buckets(t, nc).Features.Put(t.Context(), "feature.other", []byte(`{"targets":[{"provider":"echo","model":"b"}]}`))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return prompt(t, nc, "agents.prompt.llmbus.acme.other", "hello") != "" }, patience, tick)
	_, err = buckets(t, nc).Flags.Put(t.Context(), "feature.other", []byte("off"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return strings.Contains(prompt(t, nc, "agents.prompt.llmbus.acme.other", "hello"), `{"error":{"code":"switched_off"`)
	}, patience, tick)
	p.ended(t)
}
