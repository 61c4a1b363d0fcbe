package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// Config of a Server. Fields without a default are required.
type Config struct {
	// Conn is not closed by the server. Whoever owns it closes it after Run has
	// returned.
	Conn *nats.Conn

	Keys Keyring // who may ask; nil asks nobody who he is, and then only loopback addresses are served

	MaxTimeout   time.Duration // the longest a request may take; default 10m
	Admission    time.Duration // a request that no worker takes is refused after this; default 5s
	Outage       time.Duration // NATS is away for so long: requests in flight are given up; default 15s
	MaxBody      int64         // bytes of a request; default what one NATS message may hold
	MaxInFlight  int           // requests at once, above which callers are told to come back; default 4096
	HoldHeaders  time.Duration // a stream without a first text sends its headers after this, and a comment; default 45s
	PingEvery    time.Duration // longest silence of a stream whose headers were sent; default 15s
	ReadTimeout  time.Duration // of the body; default 1m
	WriteTimeout time.Duration // a caller that does not read for so long is gone; default 30s
	Grace        time.Duration // what is in flight at shutdown may take this long; default 30s

	Log *slog.Logger
}

// Keyring says whose an API key is. It may be used by many goroutines at once.
type Keyring interface {
	// Tenant returns the tenant of a key, which is empty in a fleet without
	// tenants, and whether the key is known. It must take as long for one key as
	// for another.
	Tenant(secret string) (tenant string, ok bool)
}

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Conn == nil:
		return errors.New("gateway: Conn must be set")
	case c.MaxBody < 0, c.MaxInFlight < 0:
		return errors.New("gateway: MaxBody and MaxInFlight must be 1 or more")
	case c.Admission < 0, c.Outage < 0:
		return errors.New("gateway: Admission and Outage must not be negative")
	case c.MaxTimeout < 0, c.HoldHeaders < 0, c.PingEvery < 0, c.ReadTimeout < 0, c.WriteTimeout < 0, c.Grace < 0:
		return errors.New("gateway: MaxTimeout, HoldHeaders, PingEvery, ReadTimeout, WriteTimeout and Grace must not be negative")
	case c.MaxTimeout > maxTimeout:
		return fmt.Errorf("gateway: MaxTimeout must be at most %s", maxTimeout)
	}
	return nil
}

const maxTimeout = 24 * time.Hour

func (c Config) withDefaults() Config {
	c.MaxTimeout = cmp.Or(c.MaxTimeout, 10*time.Minute)
	c.Admission = cmp.Or(c.Admission, 5*time.Second)
	c.Outage = cmp.Or(c.Outage, 15*time.Second)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 4096)
	c.HoldHeaders = cmp.Or(c.HoldHeaders, 45*time.Second)
	c.PingEvery = cmp.Or(c.PingEvery, 15*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
