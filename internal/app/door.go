package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/internal/page"
)

// defaultHTTP is where the command gateway listens.
const defaultHTTP = "127.0.0.1:8080"

// door is the OpenAI door of this process, with a connection of its own: what it
// cannot read fast enough must not count as the worker's.
type door struct {
	*App
	conn     *connection
	server   *gateway.Server
	listener net.Listener
	keys     keyring // nil: nobody is asked who he is
	fleet    *fleet.Watch
	page     *page.Page
	adminKey bool // the page has one
}

// newDoor listens. fit says whether keys are good for the workers.
func (a *App) newDoor(url string, fit func(*gateway.Keys) error) (*door, error) {
	d := &door{App: a}
	var err error
	if d.keys, err = a.env.httpKeys(fit, a.log); err != nil {
		return nil, err
	}
	if d.conn, err = a.env.connect(url, "llmbus gateway "+a.name, a.log); err != nil {
		return nil, err
	}
	d.server, err = gateway.New(gateway.Config{Conn: d.conn.Conn, Keys: d.keys, MaxTimeout: a.env.MaxTimeout, Grace: a.env.ShutdownGrace, Log: a.log})
	if err == nil {
		d.listener, err = net.Listen("tcp", httpAddress(a.env.HTTP))
	}
	if err != nil {
		d.conn.Close()
		return nil, fmt.Errorf("LLMBUS_HTTP: %w", err)
	}
	if err = d.addPage(); err != nil {
		d.conn.Close()
		return nil, errors.Join(err, d.listener.Close())
	}
	return d, nil
}

// run serves until ctx ends, and then closes the connection.
func (d *door) run(ctx context.Context) error {
	serve := func(ctx context.Context) error { return d.server.Run(ctx, d.listener) }
	err := together(ctx, serve, d.watch, d.fleet.Run, d.page.Run)
	return errors.Join(err, d.conn.end())
}

// watch fails when the connection is closed for good.
func (d *door) watch(ctx context.Context) error {
	select {
	case <-d.conn.closed:
		return d.conn.lost()
	case <-ctx.Done():
		return nil
	}
}

// describe says where the door is, for the banner.
func (d *door) describe() string {
	who := "no API keys: this machine only"
	if d.keys != nil {
		who = fmt.Sprintf("%d API keys", d.keys.Len())
	}
	return fmt.Sprintf("http://%s/v1 (%s)", d.listener.Addr(), who)
}

// newDoor makes the part that serves HTTP until its context ends, if that was
// asked for.
func (w *worker) newDoor() (run func(context.Context) error, err error) {
	if w.env.HTTP == "" {
		return func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, nil
	}
	fit := func(keys *gateway.Keys) error { return keys.Fit(w.env.Tenants) }
	if w.door, err = w.App.newDoor(w.conn.url, fit); err != nil {
		return nil, err
	}
	w.door.measure(w.telemetry)
	return w.door.run, nil
}

// RunGateway serves HTTP alone, without a worker, until ctx ends or the
// connection to NATS is closed for good.
func (a *App) RunGateway(ctx context.Context) error {
	a.env.HTTP = cmp.Or(a.env.HTTP, defaultHTTP)
	unknown := func(*gateway.Keys) error { return nil } // what the workers are told
	d, err := a.newDoor(a.env.URL(), unknown)
	if err != nil {
		return err
	}
	if a.opts.Out != nil {
		fmt.Fprintf(a.opts.Out, "llmbus %s, gateway %s\n  %-10s%s\n  %-10s%s\n  %-10s%s\n", a.opts.Version, a.name,
			"NATS", a.env.URL(), "HTTP", d.describe(), "page", d.describePage())
	}
	if a.opts.Ready != nil {
		a.opts.Ready()
	}
	return d.runAlone(ctx)
}

// httpAddress is where to listen: on the loopback interface unless a host is
// named.
func httpAddress(setting string) string {
	if strings.HasPrefix(setting, ":") {
		return "127.0.0.1" + setting
	}
	return setting
}

// keyring is what the door needs of a list of API keys.
type keyring interface {
	gateway.Keyring
	Len() int
}

// httpKeys are the API keys, nil for none.
func (e *Environment) httpKeys(fit func(*gateway.Keys) error, log *slog.Logger) (keyring, error) {
	switch {
	case e.HTTPKeysFile != "":
		f, err := newKeyFile(e.HTTPKeysFile, fit, log)
		if err != nil {
			return nil, fmt.Errorf("LLMBUS_HTTP_KEYS_FILE: %w", err)
		}
		return f, nil
	case e.HTTPKeys != "":
		keys, err := gateway.ParseKeys(e.HTTPKeys)
		if err == nil {
			err = fit(keys)
		}
		if err != nil {
			return nil, fmt.Errorf("LLMBUS_HTTP_KEYS: %w", err)
		}
		return keys, nil
	}
	return nil, nil
}

// refuseHTTP refuses what cannot apply of the door.
func (e *Environment) refuseHTTP(refuse func(when bool, format string, args ...any)) {
	refuse(e.HTTPKeys != "" && e.HTTPKeysFile != "", "HTTP_KEYS_FILE: cannot be set together with LLMBUS_HTTP_KEYS; keep one")
	refuse(e.HTTP != "" && e.Tenants && e.HTTPKeys == "" && e.HTTPKeysFile == "",
		"HTTP: needs LLMBUS_HTTP_KEYS_FILE with LLMBUS_TENANTS, since keys say whose a request is (broker gateway key <tenant> makes one)")
	if e.HTTP == "" || e.HTTPKeys != "" || e.HTTPKeysFile != "" {
		return
	}
	host, port, err := net.SplitHostPort(httpAddress(e.HTTP))
	if refuse(err != nil || port == "", "HTTP: must be host:port, such as %s", defaultHTTP); err != nil || port == "" {
		return
	}
	ip := net.ParseIP(host)
	refuse(host != "localhost" && (ip == nil || !ip.IsLoopback()),
		"HTTP: must be a loopback address, since no API keys are set; set LLMBUS_HTTP_KEYS_FILE (broker gateway key makes one)")
}
