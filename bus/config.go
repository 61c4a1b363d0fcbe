package bus

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Config of a Worker. Fields without a default are required.
type Config struct {
	// Conn is not closed by the worker. Whoever owns it drains it and waits until
	// it is closed, after Run has returned.
	Conn *nats.Conn

	// Completer does the work, in as many goroutines as there are Slots.
	Completer llm.Completer

	// Replay gives readers that come back the frames of resumable answers. Nil
	// serves no such readers and keeps no frames.
	Replay Replay

	// LameDuck tells that the connection's server is about to leave, as
	// nats.LameDuckModeHandler hears: the worker then has the connection made anew
	// to another server. May be nil, which costs requests that this server had
	// sent and the client had not read when it closes the connection.
	LameDuck <-chan struct{}

	Slots      int           // requests at once; default 256
	Readers    int           // readers that came back, at once; default 4096
	FullFor    time.Duration // full for longer: the worker leaves the queue group; default 1s
	CalmFor    time.Duration // below 3/4 of the slots for longer: it joins again; default 250ms
	BusyAfter  time.Duration // Retry-After of a busy answer; default 1s
	MaxTimeout time.Duration // longest time a request may take; default 10m
	PingEvery  time.Duration // longest silence of a stream, up to 10s; default 10s
	Grace      time.Duration // what is in flight at shutdown may take this long; default 30s

	Tenants      bool             // take requests with the tenant in the subject, as account imports map them
	TenantHeader bool             // believe Llm-Tenant; for one tenant's own fleet, never together with Tenants
	Inboxes      subjects.Inboxes // where answers may go; the usual inboxes by default

	Version  string     // semantic version, default 0.0.0
	Features []string   // for the service's metadata
	Status   func() any // what the status endpoint says of the parts behind the bus; may be nil
	Log      *slog.Logger
}

const (
	minPingEvery = 100 * time.Millisecond // a caller cannot ask for more
	maxPingEvery = 10 * time.Second       // callers take longer silence for a dead worker
	maxTimeout   = 24 * time.Hour
)

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Conn == nil:
		return fmt.Errorf("bus: Conn must be set")
	case c.Completer == nil:
		return fmt.Errorf("bus: Completer must be set")
	case c.Slots < 0:
		return fmt.Errorf("bus: Slots must be 1 or more")
	case c.Readers < 0:
		return fmt.Errorf("bus: Readers must be 1 or more")
	case c.FullFor < 0, c.CalmFor < 0, c.BusyAfter < 0, c.Grace < 0:
		return fmt.Errorf("bus: FullFor, CalmFor, BusyAfter and Grace must not be negative")
	case c.MaxTimeout < 0 || c.MaxTimeout > maxTimeout:
		return fmt.Errorf("bus: MaxTimeout must be above 0 and at most %s", maxTimeout)
	case c.PingEvery < 0 || c.PingEvery > maxPingEvery:
		return fmt.Errorf("bus: PingEvery must be above 0 and at most %s", maxPingEvery)
	case c.Tenants && c.TenantHeader:
		return fmt.Errorf("bus: TenantHeader must be off with Tenants, since a header proves nothing")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Slots = cmp.Or(c.Slots, 256)
	c.Readers = cmp.Or(c.Readers, 4096)
	c.FullFor = cmp.Or(c.FullFor, time.Second)
	c.CalmFor = cmp.Or(c.CalmFor, 250*time.Millisecond)
	c.BusyAfter = cmp.Or(c.BusyAfter, time.Second)
	c.MaxTimeout = cmp.Or(c.MaxTimeout, 10*time.Minute)
	c.PingEvery = cmp.Or(c.PingEvery, maxPingEvery)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.Version = cmp.Or(c.Version, "0.0.0")
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
