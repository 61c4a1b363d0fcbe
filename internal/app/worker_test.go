package app

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func TestServerWithoutJetStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
		require.NoError(t, err)
		srv.Start()
		t.Cleanup(func() {
			srv.Shutdown()
			srv.WaitForShutdown()
		})
		require.True(t, srv.ReadyForConnections(startPatience))
		_, err = openBuckets(t.Context(), natstest.Connect(t, srv), kv.Options{})
		require.ErrorContains(t, err, "the NATS server offers no JetStream, which llmbus needs; start it with -js, or enable it for the account")
	})
}
