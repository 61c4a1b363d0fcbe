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
// worker is taken for dead; the default is 30s, three of the workers' pings.
func WithSilence(d time.Duration) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("client: silence must be above 0")
		}
		c.silence = d
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
