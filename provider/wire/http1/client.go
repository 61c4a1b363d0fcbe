package http1

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config of a Client. Every field is required but TLS.
type Config struct {
	ConnectTimeout time.Duration // to connect, and again for the TLS handshake
	IdleTimeout    time.Duration // how long a connection is kept that no call uses
	MaxIdle        int           // such connections to one host
	MaxHead        int64         // bytes of the head of an answer, with those that go before it (1xx)
	TLS            *tls.Config   // nil is the system's
}

// Client makes calls and keeps their connections for later ones. It may be used
// by many goroutines at once.
type Client struct {
	cfg    Config
	dialer net.Dialer
	pool   pool
	heads  sync.Pool // of *[]byte, for what is written at once
}

// New makes a Client without connections.
func New(cfg Config) *Client {
	return &Client{
		cfg: cfg, dialer: net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 15 * time.Second},
		pool:  pool{timeout: cfg.IdleTimeout, max: cfg.MaxIdle, idle: map[host][]*conn{}},
		heads: sync.Pool{New: func() any { return new([]byte) }},
	}
}

// Close drops the connections that no call uses, and keeps none from then on.
func (c *Client) Close() { c.pool.close() }

// Post makes the call once and returns the answer as soon as its head is there.
// The caller reads the body to its end, which frees the connection for the next call, or
// closes it, which cuts the connection. Both may be done at once, by two
// goroutines. Once the context has ended the connection is cut, too.
//
// The error is a *BadAnswer if the peer has begun to answer. Until it is returned, or
// the answer's body is closed, body must not change: an answer may come before all of it is sent.
func (c *Client) Post(ctx context.Context, to *Endpoint, body []byte) (*http.Response, error) {
	for {
		if err := ctx.Err(); err != nil { // else the request might be faster than the cut
			return nil, err
		}
		cn, kept := c.pool.take(to.host)
		if !kept {
			var err error
			if cn, err = c.dial(ctx, to.host); err != nil {
				return nil, err
			}
		}
		stop := context.AfterFunc(ctx, cn.cut)
		n, sending, err := cn.send(to, body, &c.heads)
		if err != nil && n == 0 && kept {
			stop()
			cn.cut()
			continue
		}
		resp, err := cn.answer(err)
		b := &answerBody{conn: cn, pool: &c.pool, stop: stop, sending: sending}
		if err != nil {
			b.end(false)
			return nil, err
		}
		b.ReadCloser, b.last, resp.Body = resp.Body, resp.Close || resp.StatusCode == http.StatusSwitchingProtocols, b
		return resp, nil
	}
}

// dial connects in a goroutine of its own. It needs a deep stack, and that of the
// call would stay as large for as long as its stream lasts.
func (c *Client) dial(ctx context.Context, to host) (cn *conn, err error) {
	var dialing sync.WaitGroup
	dialing.Go(func() { cn, err = c.connect(ctx, to) })
	dialing.Wait()
	return cn, err
}

func (c *Client) connect(ctx context.Context, to host) (*conn, error) {
	tcp, err := c.dialer.DialContext(ctx, "tcp", to.addr)
	if err != nil {
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
			<-ctx.Done() // the dialer looks at the clock and may be a little ahead
		}
		return nil, err
	}
	cn := &conn{Conn: tcp, tcp: tcp, host: to, maxHead: c.cfg.MaxHead}
	if to.tls {
		cn.Conn, err = c.secure(ctx, tcp, to)
	}
	if err == nil {
		err = cn.init()
	}
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return cn, nil
}

func (c *Client) secure(ctx context.Context, tcp net.Conn, to host) (net.Conn, error) {
	cfg := c.cfg.TLS.Clone()
	if cfg == nil {
		cfg = &tls.Config{}
	}
	if cfg.ServerName == "" {
		cfg.ServerName = to.name
	}
	cfg.NextProtos = []string{"http/1.1"}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	secured := tls.Client(tcp, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return secured, nil
}
