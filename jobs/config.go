package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// MaxExpiry is the longest that a job may live.
const MaxExpiry = 7 * 24 * time.Hour

// crashLimit is how many workers may die of one job before it is given up.
const crashLimit = 10

// Config of a Worker. Fields without a default are required.
type Config struct {
	Conn      *nats.Conn
	Streams   *Streams
	Completer llm.Completer // called in as many goroutines as there are Slots

	Policy     func(feature string) Policy // of a feature as it is now; DefaultBackoff by default
	Slots      int                         // jobs at once; default 16
	MaxTimeout time.Duration               // longest time of one try; default 10m
	Expiry     time.Duration               // of jobs that name none, up to MaxExpiry; default 24h

	Tenants      bool             // take jobs with the tenant in the subject, as account imports map them
	TenantHeader bool             // believe Llm-Tenant; never together with Tenants
	Inboxes      subjects.Inboxes // where replies may go; the usual inboxes by default

	Log *slog.Logger
}

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Conn == nil, c.Streams == nil, c.Completer == nil:
		return errors.New("jobs: Conn, Streams and Completer must be set")
	case c.Streams.consumer == nil:
		return errors.New("jobs: Streams must come from Open")
	case c.Slots < 0:
		return errors.New("jobs: Slots must be 1 or more")
	case c.MaxTimeout < 0:
		return errors.New("jobs: MaxTimeout must be above 0")
	case c.Expiry < 0 || c.Expiry > MaxExpiry:
		return fmt.Errorf("jobs: Expiry must be above 0 and at most %s", MaxExpiry)
	case c.Tenants && c.TenantHeader:
		return errors.New("jobs: TenantHeader must be off with Tenants, since a header proves nothing")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Slots = cmp.Or(c.Slots, 16)
	c.MaxTimeout = cmp.Or(c.MaxTimeout, 10*time.Minute)
	c.Expiry = cmp.Or(c.Expiry, 24*time.Hour)
	if c.Policy == nil {
		c.Policy = func(string) Policy { return Policy{Backoff: DefaultBackoff()} }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
