package sim

import (
	"net"
	"sync"
	"time"
)

// gate is a listener that can go down: its port closes, so that callers are
// refused, and opens again later. Accept itself waits for that and reopens the
// port, so no goroutine is needed.
type gate struct {
	addr   string
	closed chan struct{}
	wake   chan struct{} // Accept looks again before the time is over

	mu       sync.Mutex
	listener net.Listener // nil while down
	upAt     time.Time    // while down
	conns    map[*conn]struct{}
	accepted int
	shut     bool
}

// conn is a connection that the gate knows of until it is closed.
type conn struct {
	net.Conn
	gate *gate
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// resetOnClose makes the next Close send RST in place of FIN.
func (c *conn) resetOnClose() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a closed connection, which is as good
	}
}

func openGate(addr string) (*gate, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &gate{
		addr: l.Addr().String(), listener: l, conns: map[*conn]struct{}{},
		closed: make(chan struct{}), wake: make(chan struct{}, 1),
	}, nil
}

// Addr is the same before, during and after a time down.
func (g *gate) Addr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", g.addr) // it was a listener's address, so it is well formed
	return addr
}

// Accept waits for the next connection, however long the gate is down.
func (g *gate) Accept() (net.Conn, error) {
	for {
		l, err := g.up()
		if err != nil {
			return nil, err
		}
		if l == nil {
			continue
		}
		inner, err := l.Accept()
		if err != nil {
			if g.current() == l {
				return nil, err
			}
			continue
		}
		if c := g.admit(inner, l); c != nil {
			return c, nil
		}
	}
}

// up returns the open listener. While the gate is down it waits until it may
// be opened, or returns nil for the caller to ask again.
func (g *gate) up() (net.Listener, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut:
		return nil, net.ErrClosed
	case g.listener != nil:
		return g.listener, nil
	}
	wait := time.Until(g.upAt)
	if wait <= 0 {
		l, err := net.Listen("tcp", g.addr)
		if err == nil {
			g.listener = l
			return l, nil
		}
		wait = 20 * time.Millisecond // somebody else has the port just now
	}
	g.mu.Unlock()
	defer g.mu.Lock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.wake:
	case <-g.closed:
	}
	return nil, nil
}

func (g *gate) current() net.Listener {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listener
}

// admit takes a connection in, unless the gate went down meanwhile.
func (g *gate) admit(inner net.Conn, from net.Listener) *conn {
	c := &conn{Conn: inner, gate: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != from {
		c.resetOnClose()
		_ = inner.Close()
		return nil
	}
	g.conns[c] = struct{}{}
	g.accepted++
	return c
}

// down closes the port for so long and resets every connection but spare. A
// second call prolongs the first, and never shortens it.
func (g *gate) down(long time.Duration, spare *conn) {
	g.mu.Lock()
	if until := time.Now().Add(long); until.After(g.upAt) {
		g.upAt = until
	}
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	var broken []*conn
	for c := range g.conns {
		if c != spare {
			broken = append(broken, c)
		}
	}
	g.mu.Unlock()
	for _, c := range broken {
		c.resetOnClose()
		_ = c.Close()
	}
}

// open ends a time down early.
func (g *gate) open() {
	g.mu.Lock()
	g.upAt = time.Time{}
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Close ends Accept for good. Connections stay with the HTTP server.
func (g *gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil
	}
	g.shut = true
	close(g.closed)
	if g.listener == nil {
		return nil
	}
	return g.listener.Close()
}

func (g *gate) counts() (open, accepted int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns), g.accepted
}
