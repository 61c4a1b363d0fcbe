package natstest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Far is Connect from a place whose messages take so long each way, as from
// another region. The line is as wide as need be: what is sent together arrives
// together. It works inside a Bubble.
func Far(t testing.TB, srv *server.Server, delay time.Duration, opts ...nats.Option) *nats.Conn {
	t.Helper()
	l := &line{srv: srv, delay: delay}
	t.Cleanup(l.passing.Wait) // after the connection is closed
	return Connect(t, srv, append([]nats.Option{nats.InProcessServer(l)}, opts...)...)
}

// line makes connections that are slow to pass things on.
type line struct {
	srv     *server.Server
	delay   time.Duration
	passing sync.WaitGroup
}

// InProcessConn is what the client calls to connect.
func (l *line) InProcessConn() (net.Conn, error) {
	there, err := l.srv.InProcessConn()
	if err != nil {
		return nil, err
	}
	here, end := net.Pipe()
	l.pass(there, end)
	l.pass(end, there)
	return here, nil
}

// parcel is bytes on their way.
type parcel struct {
	data []byte
	due  time.Time
}

// pass carries bytes from one end to the other until either is closed, which
// closes both.
func (l *line) pass(to, from net.Conn) {
	way := make(chan parcel, 1<<16)
	l.passing.Go(func() {
		defer close(way)
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			way <- parcel{append([]byte(nil), buf[:n]...), time.Now().Add(l.delay)}
		}
	})
	l.passing.Go(func() {
		defer func() { _, _ = to.Close(), from.Close() }()
		for p := range way {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				break
			}
		}
		for range way { // the reader ends when from is closed
			continue
		}
	})
}
