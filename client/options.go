package client

import (
	"fmt"
	"time"

	"github.com/llmbus/llmbus/subjects"
)

// Option adjusts a Client.
type Option func(*Client) error

// WithTimeout bounds requests whose context has no deadline; the default is 5
// minutes.
func WithTimeout(d time.Duration) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("client: timeout must be above 0")
		}
		c.timeout = d
		return nil
	}
}

// WithSilence is how long a stream may carry neither frame nor ping before its
// worker is taken for dead, and a whole answer likewise; the default is 10s.
// Workers are asked for a ping in a third of it, and send 10 a second at most.
func WithSilence(d time.Duration) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("client: silence must be above 0")
		}
		c.silence = d
		return nil
	}
}

// WithRedispatch is how many times a request may be sent again, to another
// worker, after its worker fell silent before anything of the answer came; the
// default is 2. The lost worker may have called a provider, so 0 is for requests
// that must not be paid for twice.
func WithRedispatch(times int) Option {
	return func(c *Client) error {
		if times < 0 {
			return fmt.Errorf("client: redispatch must not be negative")
		}
		c.redispatches = times
		return nil
	}
}

// WithTenant claims a tenant, for fleets that believe Llm-Tenant. Where tenants
// are accounts the server names the tenant, and nothing is to be said here.
func WithTenant(tenant string) Option {
	return func(c *Client) error {
		if !subjects.ValidRequestID(tenant) {
			return fmt.Errorf("client: tenant must be at most %d printable ASCII characters without space", subjects.MaxRequestID)
		}
		c.tenant = tenant
		return nil
	}
}
