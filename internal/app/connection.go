package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pingInterval   = 20 * time.Second
	connectTimeout = 5 * time.Second
	drainPatience  = 10 * time.Second
)

// connection is the one to NATS, with a word on its end.
type connection struct {
	*nats.Conn
	url    string
	closed chan struct{} // it is closed for good
	last   error         // why, once closed
	lame   chan struct{} // holds one token when the server is about to leave
}

// connect dials in the background if no server answers at once: a fleet may
// well start before its servers. The handlers are set before anything is
// subscribed.
func (e *Environment) connect(url, name string, log *slog.Logger) (*connection, error) {
	c := &connection{url: url, closed: make(chan struct{}), lame: make(chan struct{}, 1)}
	options := []nats.Option{
		nats.RetryOnFailedConnect(true),
		nats.ConnectHandler(func(nc *nats.Conn) { log.Info("connected to NATS", "server", nc.ConnectedUrlRedacted()) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted()) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("disconnected from NATS", "error", err)
			}
		}),
		nats.ReconnectErrHandler(c.unreached(log)),
		nats.LameDuckModeHandler(func(*nats.Conn) {
			select {
			case c.lame <- struct{}{}:
			default: // told already
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { report(log, sub, err) }),
		nats.ClosedHandler(func(nc *nats.Conn) {
			c.last = nc.LastError()
			close(c.closed)
		}),
	}
	auth, err := e.Options(name)
	if err != nil {
		return nil, err
	}
	if c.Conn, err = nats.Connect(url, append(auth, options...)...); err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", url, err)
	}
	return c, nil
}

// Options are those of every connection to NATS that this environment makes.
func (e *Environment) Options(name string) ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.PingInterval(pingInterval), nats.Timeout(connectTimeout),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		nats.PermissionErrOnSubscribe(true), // else who may not hear something waits for ever
	}
	if e.NatsInbox != "" {
		options = append(options, nats.CustomInboxPrefix(e.NatsInbox))
	}
	switch {
	case e.NatsCreds != "":
		options = append(options, nats.UserCredentials(e.NatsCreds))
	case e.NatsNkey != "":
		nkey, err := nats.NkeyOptionFromSeed(e.NatsNkey)
		if err != nil {
			return nil, fmt.Errorf("LLMBUS_NATS_NKEY: %w", err)
		}
		options = append(options, nkey)
	case e.NatsUser != "":
		options = append(options, nats.UserInfo(e.NatsUser, e.NatsPassword.Reveal()))
	case e.NatsToken != "":
		options = append(options, nats.Token(e.NatsToken.Reveal()))
	}
	if e.NatsTLSCa != "" {
		options = append(options, nats.RootCAs(e.NatsTLSCa))
	}
	if e.NatsTLSCert != "" {
		options = append(options, nats.ClientCert(e.NatsTLSCert, e.NatsTLSKey))
	}
	if e.NatsTLSCa != "" || e.NatsTLSCert != "" {
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	return options, nil
}

// unreached logs why there is no connection yet, once for each reason in a row:
// a server that is down is tried again a few times a second.
func (c *connection) unreached(log *slog.Logger) nats.ConnErrHandler {
	last := "" // the client calls from one goroutine
	return func(_ *nats.Conn, err error) {
		if reason := err.Error(); reason != last {
			last = reason
			log.Warn("NATS cannot be reached; trying on", "reason", reason)
		}
	}
}

// report logs what NATS tells beside the calls. A slow consumer of ours has
// lost messages.
func report(log *slog.Logger, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	if errors.Is(err, nats.ErrSlowConsumer) {
		dropped, _ := sub.Dropped()
		log.Warn("this worker is slow: NATS dropped messages", "subject", subject, "dropped", dropped)
		return
	}
	log.Warn("NATS reports an error", "subject", subject, "error", err)
}

// ready waits until the connection is there.
func (c *connection) ready(ctx context.Context) error {
	status := c.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.RemoveStatusListener(status)
	if c.IsConnected() {
		return nil
	}
	for {
		select {
		case s := <-status:
			if s == nats.CONNECTED {
				return nil
			}
		case <-c.closed: // a little after the status, and then last is set
			return c.lost()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lost is the error of a connection that closed by itself. It may be called
// once closed is closed.
func (c *connection) lost() error {
	if c.last == nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w; check LLMBUS_NATS_URL and the credentials", ErrClosed, c.last)
}

// end drains the connection and waits until it is closed.
func (c *connection) end() error {
	if c.IsClosed() {
		return nil
	}
	if err := c.Drain(); err != nil {
		c.Close()
		if errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrConnectionClosed) {
			return nil // nothing can be drained to a server that is not there
		}
		return fmt.Errorf("drain the connection to NATS: %w", err)
	}
	timer := time.NewTimer(drainPatience)
	defer timer.Stop()
	select {
	case <-c.closed:
		return nil
	case <-timer.C:
		c.Close()
		return fmt.Errorf("the connection to NATS did not drain within %s", drainPatience)
	}
}
