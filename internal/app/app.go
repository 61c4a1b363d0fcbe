package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/nats-io/nuid"
)

// Options of an App, beside its environment.
type Options struct {
	Version string       // semantic version
	Command string       // how people call this program, for the next step in the banner
	Out     io.Writer    // gets the banner; nil: none
	Log     *slog.Logger // nil logs nothing
	Config  []byte       // text of the configuration, instead of a file
	Ready   func()       // called once when requests are taken; may be nil
}

// App is one worker process.
type App struct {
	env  *Environment
	opts Options
	log  *slog.Logger
	name string // unique for each start
}

// New makes an App. Nothing is started before Run.
func New(env *Environment, opts Options) *App {
	a := &App{env: env, opts: opts, log: opts.Log, name: workerName(env.WorkerName)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	return a
}

// workerName is readable and differs between two starts.
func workerName(given string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	id := nuid.Next()
	return cmp.Or(given, fmt.Sprintf("%s-%d", host, os.Getpid())) + "-" + id[len(id)-4:]
}

// headroom is how much garbage, in bytes and at the least, may gather before the
// collector runs, beside what GOGC says. A worker holds some 4 MB and makes that much garbage
// in a 30th of a second, so that without it a tenth of its time would go into
// collecting. It is memory that nobody touches, and none of the machine's; the
// process grows by as much garbage.
const headroom = 4 << 20

// Run serves until ctx ends, which is no error, or a part fails.
func (a *App) Run(ctx context.Context) (err error) {
	unused := make([]byte, headroom) // first of all, while there is no used memory to make it of
	defer runtime.KeepAlive(unused)
	if err := a.env.doorless(); err != nil {
		return err
	}
	src, err := newSource(a.env, a.opts.Config)
	if err != nil {
		return err
	}
	if err := unknown(a.env); err != nil {
		a.log.Warn("a variable of the environment is not a setting and has no effect", "reason", err)
	}
	url := a.env.NatsURL
	var server *Server
	if a.env.Embedded() {
		if server, err = a.newServer(); err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
	}
	conn, err := a.env.connect(url, "llmbus "+a.name, a.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.end()) }()
	err = a.serve(ctx, conn, src, server)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil // told to stop before it had begun
	}
	return err
}

func (a *App) newServer() (*Server, error) {
	dir, err := a.env.storeDir()
	if err != nil {
		return nil, err
	}
	return NewServer(ServerConfig{Addr: a.env.listen(), Dir: dir, User: a.env.NatsUser, Password: a.env.NatsPassword, Token: a.env.NatsToken, Log: a.log})
}

func (a *App) serve(ctx context.Context, conn *connection, src source, server *Server) error {
	if !conn.IsConnected() {
		a.log.Warn("waiting for NATS", "url", a.env.NatsURL)
	}
	if err := conn.ready(ctx); err != nil {
		return err
	}
	w, err := newWorker(ctx, a, conn, src)
	if err != nil {
		return err
	}
	return w.run(ctx, func() {
		if a.opts.Out != nil {
			_, _ = io.WriteString(a.opts.Out, w.banner(server))
		}
		if a.opts.Ready != nil {
			a.opts.Ready()
		}
	})
}
