package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// Listener is a JetStream server on a loopback port. It can be stopped and
// restarted on the same port over the same files. Not for bubbles.
type Listener struct {
	*server.Server
	t    testing.TB
	opts *server.Options
}

// ListenServer starts a Listener; change may adjust its options first. It is
// shut down when t ends.
func ListenServer(t testing.TB, change ...func(*server.Options)) *Listener {
	t.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: freePorts(t, 1)[0], JetStream: true, StoreDir: t.TempDir()}
	for _, f := range change {
		f(opts)
	}
	return &Listener{t: t, opts: opts, Server: start(t, opts.Clone())}
}

// Stop shuts the server down and waits until its port is free.
func (l *Listener) Stop() { stop(l.Server) }

// Restart starts the server again on the same port and files; a server that
// still runs is stopped first.
func (l *Listener) Restart() {
	l.t.Helper()
	l.Stop()
	l.Server = start(l.t, l.opts.Clone())
}

// Dial connects over the loopback port and keeps reconnecting fast; the
// connection is closed when t ends.
func (l *Listener) Dial(opts ...nats.Option) *nats.Conn {
	l.t.Helper()
	return dial(l.t, l.ClientURL(), opts)
}

func dial(t testing.TB, url string, opts []nats.Option) *nats.Conn {
	t.Helper()
	fast := []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0)}
	nc, err := nats.Connect(url, append(fast, opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}
