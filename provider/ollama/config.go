package ollama

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
	BaseURL        string        // without /api; empty is http://127.0.0.1:11434
	APIKey         wire.Secret   // sent as a bearer token, for hosted models; local servers need none
	Headers        http.Header   // sent with every call
	ContextTokens  int           // num_ctx: the window, of prompt and answer together; 0 is the server's default
	KeepAlive      time.Duration // how long the model stays loaded after a call; 0 is the server's default, negative is for good
	ConnectTimeout time.Duration // 0 is wire's default
	MaxIdleConns   int           // 0 is wire's default

	Now func() time.Time // for dates in Retry-After; nil is time.Now
}

const defaultBaseURL = "http://127.0.0.1:11434"

// Validate says which setting cannot apply.
func (c *Config) Validate() error {
	base, err := wire.ParseBase(cmp.Or(c.BaseURL, defaultBaseURL))
	switch {
	case err != nil:
		return err
	case strings.HasSuffix(base.Path, "/api"), strings.HasSuffix(base.Path, "/v1"):
		return errors.New("base_url must not end with /api or /v1; the path is added")
	case c.ContextTokens < 0:
		return errors.New("context_tokens must be 1 or more")
	case c.ConnectTimeout < 0:
		return errors.New("connect_timeout must not be negative")
	case c.MaxIdleConns < 0:
		return errors.New("max_idle_conns must not be negative")
	}
	if err := wire.CheckHeader(c.Headers); err != nil {
		return err
	}
	return wire.CheckHeader(c.header()) // the key must be fit to be sent, too
}

// header is what every call carries.
func (c *Config) header() http.Header {
	h := http.Header{}
	for name, values := range c.Headers {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if c.APIKey != "" {
		h.Set("Authorization", "Bearer "+c.APIKey.Reveal())
	}
	return h
}

// Capabilities is what every model behind this API can do. Tools and images
// depend on the model, so a target must say so itself.
func (c *Config) Capabilities() provider.Capabilities {
	return provider.Capabilities{JSONSchema: true, Streaming: true, Seed: true}
}
