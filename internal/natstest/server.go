package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// readyWithin bounds how long a server may take to start.
const readyWithin = time.Minute

// Server starts a JetStream server without a socket. It works inside a Bubble;
// use memory storage there. It is shut down when t ends.
func Server(t testing.TB) *server.Server {
	t.Helper()
	return start(t, &server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir()})
}

// Connect opens an in-process connection to srv, closed when t ends.
func Connect(t testing.TB, srv *server.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", append([]nats.Option{nats.InProcessServer(srv)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func start(t testing.TB, opts *server.Options) *server.Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { stop(srv) })
	require.True(t, srv.ReadyForConnections(readyWithin), "the NATS server did not start within %s", readyWithin)
	return srv
}

func stop(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}
