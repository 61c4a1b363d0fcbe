package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/llmbus/llmbus/provider/wire"
)

const (
	startPatience = 15 * time.Second
	maxPayload    = 8 << 20 // images and long conversations
)

// Server is a NATS server with JetStream inside this process, for a machine
// that has none.
type Server struct {
	srv *server.Server
	dir string
}

// ServerConfig is what a Server is made of. Whoever logs in may do everything.
type ServerConfig struct {
	Addr string // host:port, where port 0 is any
	Dir  string // holds the data, and must be no other server's

	User     string // who may log in, with Password; empty asks nobody who he is, for the loopback interface alone
	Password wire.Secret
	Token    wire.Secret // instead of User and Password

	Log *slog.Logger
}

// NewServer starts one.
func NewServer(cfg ServerConfig) (*Server, error) {
	open := cfg.User == "" && cfg.Token == ""
	if err := loopback(cfg.Addr); open && err != nil {
		return nil, err
	}
	host, port, err := free(cfg.Addr)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for the embedded NATS server's data (set LLMBUS_STORE_DIR for another): %w", err)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "llmbus-embedded", Host: host, Port: port,
		JetStream: true, StoreDir: cfg.Dir, MaxPayload: maxPayload,
		Username: cfg.User, Password: cfg.Password.Reveal(), Authorization: cfg.Token.Reveal(),
		NoSigs: true, NoSystemAccount: false, DisableJetStreamBanner: true,
		NoFastProducerStall: true, // a caller that does not read its stream would slow its worker, and so everybody's answers
	})
	if err != nil {
		return nil, fmt.Errorf("make the embedded NATS server: %w", err)
	}
	srv.SetLoggerV2(serverLog{cfg.Log}, false, false, false)
	srv.Start()
	s := &Server{srv, cfg.Dir}
	if !srv.ReadyForConnections(startPatience) {
		s.Close()
		return nil, fmt.Errorf("the embedded NATS server on %s did not start within %s; its log lines say why", cfg.Addr, startPatience)
	}
	return s, nil
}

// free checks that the address can be listened on, so that the reason is said
// in our words. -1 is how the server spells any port.
func free(addr string) (host string, port int, err error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", 0, fmt.Errorf("%w: something listens on %s, perhaps another broker; join it with LLMBUS_NATS_URL=nats://%s, "+
			"or choose another port with LLMBUS_LISTEN=127.0.0.1:14222", ErrPortTaken, addr, addr)
	}
	if err != nil {
		return "", 0, fmt.Errorf("listen for the embedded NATS server (set LLMBUS_LISTEN for another address): %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, err
}

// URL is where clients find the server.
func (s *Server) URL() string { return s.srv.ClientURL() }

// Close ends the server and waits until its data is safe.
func (s *Server) Close() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

// serverLog passes on what an operator should see of the server's log.
type serverLog struct{ log *slog.Logger }

var _ server.Logger = serverLog{}

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}

func (l serverLog) Warnf(format string, args ...any)  { l.write(slog.LevelWarn, format, args) }
func (l serverLog) Errorf(format string, args ...any) { l.write(slog.LevelError, format, args) }
func (l serverLog) Fatalf(format string, args ...any) { l.write(slog.LevelError, format, args) }

func (l serverLog) write(level slog.Level, format string, args []any) {
	l.log.Log(context.Background(), level, "nats-server: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
}
