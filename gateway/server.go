package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is the door. It is made by New and serves in Run.
type Server struct {
	cfg     Config
	log     *slog.Logger
	mux     *http.ServeMux
	origins *http.CrossOriginProtection
	asker   *asker
	fleet   *fleet
	handler http.Handler // route, and what was put around it
	outage  *outage
	since   time.Time // of this process, which is when its models were "created"

	slots chan struct{} // one token for each request in flight
}

// New checks the configuration. Nothing is served before Run.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Log, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		asker: &asker{conn: cfg.Conn, admission: cfg.Admission}, fleet: &fleet{conn: cfg.Conn}, outage: &outage{conn: cfg.Conn, patience: cfg.Outage},
		since: time.Now(), slots: make(chan struct{}, cfg.MaxInFlight),
	}
	s.mux.Handle("/v1/chat/completions", s.only(http.MethodPost, s.admitted(s.chat)))
	s.mux.Handle("/v1/models", s.only(http.MethodGet, s.known(s.listModels)))
	s.mux.Handle("/v1/models/{id}", s.only(http.MethodGet, s.known(s.showModel)))
	s.mux.Handle("/healthz", s.only(http.MethodGet, s.healthz))
	s.mux.Handle("/readyz", s.only(http.MethodGet, s.readyz))
	s.handler = http.HandlerFunc(s.route)
	return s, nil
}

// Around puts a handler around all that is served, such as one that measures. It
// must be called before Run.
func (s *Server) Around(wrap func(http.Handler) http.Handler) { s.handler = wrap(s.handler) }

// Handle serves a handler beside the API, as http.ServeMux.Handle does. It must
// be called before Run. Keys of the API are not asked for. The contexts of its
// requests end at shutdown at once, without the grace of answers of models.
func (s *Server) Handle(pattern string, handler http.Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(intake(r.Context()), func() { cancel(errStopped) })()
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

type intakeKey struct{}

// intake is the context that ends when a server takes no more requests.
func intake(ctx context.Context) context.Context {
	if c, ok := ctx.Value(intakeKey{}).(context.Context); ok {
		return c
	}
	return ctx
}

const (
	maxHeader     = 64 << 10
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// errStopped is why what outlasts the grace period is broken off.
var errStopped = errors.New("the gateway was stopped")

// Run serves what comes to the listener until ctx ends, lets what is in flight
// end, and closes the listener. It may be called once.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	if err := s.mayServe(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	work, stop := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), intakeKey{}, ctx))
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop(nil)
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return work },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	parts.Go(func() { s.outage.watch(work) })
	served := make(chan error, 1)
	parts.Go(func() { served <- server.Serve(l) })
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		err = s.drain(work, server)
	}
	stop(errStopped)
	s.breakOff(server)
	return errors.Join(err, server.Close())
}

// drain closes the listener and lets what is in flight end.
func (s *Server) drain(work context.Context, server *http.Server) error {
	grace, cancel := context.WithTimeout(work, s.cfg.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("requests were broken off at shutdown", "grace", s.cfg.Grace)
		return nil
	}
	return err
}

// lastWords is the time to tell callers that they were broken off.
const lastWords = time.Second

// breakOff waits for the requests in flight, whose context has ended, and cuts
// the connections of those that do not read.
func (s *Server) breakOff(server *http.Server) {
	defer time.AfterFunc(lastWords, func() { _ = server.Close() }).Stop()
	for range cap(s.slots) {
		s.slots <- struct{}{}
	}
}

// route names a request, and answers what no pattern matches in the form of the
// API.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(headerRequestID, rand.Text())
	if _, pattern := s.mux.Handler(r); pattern == "" {
		unknownPath(r).write(w)
		return
	}
	s.mux.ServeHTTP(w, r)
}
