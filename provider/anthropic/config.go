package anthropic

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// Config of a Provider. Every field may be left zero.
type Config struct {
	BaseURL          string        // without /v1; empty is https://api.anthropic.com
	APIKey           wire.Secret   // sent as x-api-key
	AuthToken        wire.Secret   // sent as a bearer token instead, as gateways want it
	Version          string        // of the API; empty is 2023-06-01
	Betas            []string      // features to switch on through anthropic-beta
	Headers          http.Header   // sent with every call
	DefaultMaxTokens int           // for requests that set none, since the API demands one; 0 is 4096
	ConnectTimeout   time.Duration // 0 is wire's default
	MaxIdleConns     int           // 0 is wire's default

	Now func() time.Time // for dates in Retry-After; nil is time.Now
}

const (
	defaultBaseURL   = "https://api.anthropic.com"
	defaultVersion   = "2023-06-01"
	defaultMaxTokens = 4096 // what every model of the family can give
)

// Validate says which setting cannot apply.
func (c *Config) Validate() error {
	base, err := wire.ParseBase(cmp.Or(c.BaseURL, defaultBaseURL))
	switch {
	case err != nil:
		return err
	case strings.HasSuffix(base.Path, "/v1"):
		return errors.New("base_url must not end with /v1; it is added")
	case c.APIKey != "" && c.AuthToken != "":
		return errors.New("api_key and auth_token cannot both be set")
	case c.DefaultMaxTokens < 0:
		return errors.New("default_max_tokens must be 1 or more")
	case c.ConnectTimeout < 0:
		return errors.New("connect_timeout must not be negative")
	case c.MaxIdleConns < 0:
		return errors.New("max_idle_conns must not be negative")
	}
	if err := wire.CheckHeader(c.Headers); err != nil {
		return err
	}
	return wire.CheckHeader(c.header()) // keys and versions must be fit to be sent, too
}

// header is what every call carries.
func (c *Config) header() http.Header {
	h := http.Header{}
	for name, values := range c.Headers {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Set("Anthropic-Version", cmp.Or(c.Version, defaultVersion))
	if len(c.Betas) > 0 {
		h.Set("Anthropic-Beta", strings.Join(c.Betas, ","))
	}
	if c.APIKey != "" {
		h.Set("X-Api-Key", c.APIKey.Reveal())
	}
	if c.AuthToken != "" {
		h.Set("Authorization", "Bearer "+c.AuthToken.Reveal())
	}
	return h
}

// Capabilities is what models behind this API can do, unless a target's own
// settings say otherwise.
func (c *Config) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Tools: true, ToolChoice: true, Vision: true, ImageURLs: true, JSONSchema: true, Streaming: true,
		ContextWindow: 200_000,
	}
}
