package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Config of a Server.
type Config struct {
	Addr string // host:port to listen on; empty is a free port on the loopback interface
}

// Server is one simulated provider. All methods may be called by many
// goroutines at once.
type Server struct {
	gate     *gate
	http     *http.Server
	rules    rules
	counters counters
	stop     context.CancelFunc // releases handlers that hang on purpose
}

// New opens the port at once, so that Addr is known, and serves from Run on.
func New(cfg Config) (*Server, error) {
	addr := cfg.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	g, err := openGate(addr)
	if err != nil {
		return nil, fmt.Errorf("open the simulator's port: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{gate: g, stop: stop}
	s.counters.init()
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	return s, nil
}

// connKey finds the connection of a request in its context.
type connKey struct{}

// Addr is the host:port that the server listens on.
func (s *Server) Addr() string { return s.gate.addr }

// URL is the base URL for an adapter's settings.
func (s *Server) URL() string { return "http://" + s.gate.addr }

// Run serves until ctx ends or Close is called, and returns when every handler
// has returned or been cut off.
func (s *Server) Run(ctx context.Context) error {
	unhook := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer unhook()
	err := s.http.Serve(s.gate)
	closing := s.Close()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, closing)
}

// Close stops the server, cuts its connections and releases what hangs. It may
// be called twice.
func (s *Server) Close() error {
	s.stop()
	return errors.Join(s.gate.Close(), ignoreClosed(s.http.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.provider("openai", openAI{}))
	mux.HandleFunc("POST /v1/messages", s.provider("anthropic", anthropic{}))
	mux.HandleFunc("POST /api/chat", s.provider("ollama", ollama{}))
	mux.HandleFunc("POST /control", s.addRule)
	mux.HandleFunc("GET /control", s.listRules)
	mux.HandleFunc("DELETE /control", s.clearRules)
	mux.HandleFunc("GET /stats", s.showStats)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(Help())) })
	return mux
}
