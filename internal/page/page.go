package page

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
)

// MinKey is the shortest admin key, in bytes. It is compared without a bound on
// how often, so that it must be beyond guessing.
const MinKey = 16

// Config of a Page.
type Config struct {
	Conn *nats.Conn // for actions
	View func() any // the fleet as it is now, ready to be JSON; called by one goroutine at a time

	Key   string // admin key; empty: nobody can act
	Local bool   // only loopback addresses are served, so that looking needs no key

	MaxViewers   int           // at once; 0 means 100
	Every        time.Duration // between two views; 0 means 1 s
	WriteTimeout time.Duration // a viewer that does not read for so long is gone; 0 means 10 s
	Log          *slog.Logger  // nil logs nothing
}

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Conn == nil, c.View == nil:
		return errors.New("page: Conn and View must be set")
	case c.Key != "" && len(c.Key) < MinKey:
		return fmt.Errorf("page: the admin key must have at least %d characters", MinKey)
	case c.MaxViewers < 0, c.Every < 0, c.WriteTimeout < 0:
		return errors.New("page: MaxViewers, Every and WriteTimeout must not be negative")
	}
	return nil
}

// Page is an http.Handler for / and /page/. It is safe for concurrent use.
type Page struct {
	cfg     Config
	log     *slog.Logger
	key     [sha256.Size]byte
	mux     *http.ServeMux
	origins *http.CrossOriginProtection
	hub     *hub
}

// New makes a Page, which shows nothing new until Run.
func New(c Config) (*Page, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.MaxViewers = cmp.Or(c.MaxViewers, 100)
	c.Every = cmp.Or(c.Every, time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	p := &Page{cfg: c, log: c.Log, key: sha256.Sum256([]byte(c.Key)), mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		hub: newHub(c.MaxViewers)}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	files, err := embedded()
	if err != nil {
		return nil, err
	}
	p.mux.Handle("GET /{$}", files.serve("index.html"))
	for _, name := range files.names() {
		p.mux.Handle("GET /page/"+name, files.serve(name))
	}
	p.mux.HandleFunc("GET /page/events", p.look(p.events))
	p.mux.HandleFunc("GET /page/dead", p.look(p.listDead))
	p.mux.HandleFunc("POST /page/switch", p.act(p.flip))
	p.mux.HandleFunc("POST /page/replay", p.act(p.replay))
	return p, nil
}

// ServeHTTP answers a request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	p.mux.ServeHTTP(w, r)
}

// Changed has the viewers told at once. It does not block.
func (p *Page) Changed() { p.hub.changed() }

// Run sends views to the viewers until ctx ends.
func (p *Page) Run(ctx context.Context) error {
	p.hub.run(ctx, p.cfg.Every, p.cfg.View)
	return nil
}
