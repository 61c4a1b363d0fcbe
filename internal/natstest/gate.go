package natstest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// gate passes TCP connections on to one address until it is shut.
type gate struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	closed  bool // shut: what comes is reset
	open    map[net.Conn]struct{}
	running sync.WaitGroup
}

func newGate(t testing.TB, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{listener: l, to: to, open: map[net.Conn]struct{}{}}
	g.running.Go(g.accept)
	t.Cleanup(func() {
		_ = l.Close()
		g.shut()
		g.running.Wait()
	})
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) accept() {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.to)
		if err != nil {
			reset(in)
			continue
		}
		if !g.hold(in, out) {
			reset(in)
			reset(out)
			continue
		}
		g.running.Go(func() { g.pass(in, out) })
		g.running.Go(func() { g.pass(out, in) })
	}
}

func (g *gate) hold(pair ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	for _, c := range pair {
		g.open[c] = struct{}{}
	}
	return true
}

// pass copies until either side ends, which ends both.
func (g *gate) pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, to)
	delete(g.open, from)
}

// shut resets every connection, and those that come until reopen. What was on
// the way is lost, as when a machine dies or a cable is cut.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for c := range g.open {
		reset(c)
	}
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
