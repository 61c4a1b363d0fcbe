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

// WithAdmission is how long a request that busy workers refuse, or that no worker
// takes, is tried again; by default as long as its deadline allows. Callers that
// can come back themselves are better off with an error soon.
func WithAdmission(d time.Duration) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("client: admission must be above 0")
		}
		c.admission = d
		return nil
	}
}

// WithTenant asks for a tenant, in the subjects: llm.complete.<feature>.<tenant>
// and so on. It is for users of one account whose permissions allow their own
// tenant alone, and for publishers that the fleet trusts, such as a gateway,
// with a Client for each tenant. Where tenants are accounts the server adds the
// tenant, and nothing is to be said here.
func WithTenant(tenant string) Option {
	return func(c *Client) error {
		c.tenant = tenant
		return checkTenant(tenant)
	}
}

// WithTenantHeader claims a tenant in Llm-Tenant, for fleets that believe it.
func WithTenantHeader(tenant string) Option {
	return func(c *Client) error {
		c.claim = tenant
		return checkTenant(tenant)
	}
}

func checkTenant(tenant string) error {
	if !subjects.ValidTenant(tenant) {
		return fmt.Errorf("client: tenant must be %s", subjects.TenantRule)
	}
	return nil
}
