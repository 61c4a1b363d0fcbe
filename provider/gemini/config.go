package gemini

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
	BaseURL        string        // without a path; empty is https://generativelanguage.googleapis.com
	ModelsPath     string        // empty is /v1beta/models; Vertex AI has /v1/projects/P/locations/L/publishers/google/models
	APIKey         wire.Secret   // sent as x-goog-api-key, never in the URL, which gets logged
	AuthToken      wire.Secret   // sent as a bearer token instead
	Headers        http.Header   // sent with every call
	ConnectTimeout time.Duration // 0 is wire's default
	MaxIdleConns   int           // 0 is wire's default

	Now func() time.Time // for dates in Retry-After; nil is time.Now
}

const (
	defaultBaseURL    = "https://generativelanguage.googleapis.com"
	defaultModelsPath = "/v1beta/models"
)

// Validate says which setting cannot apply.
func (c *Config) Validate() error {
	base, err := wire.ParseBase(cmp.Or(c.BaseURL, defaultBaseURL))
	switch {
	case err != nil:
		return err
	case strings.Contains(base.Path, "/v1"):
		return errors.New("base_url must not hold the version; set models_path")
	case c.ModelsPath != "" && (!strings.HasPrefix(c.ModelsPath, "/") || strings.HasSuffix(c.ModelsPath, "/") ||
		strings.ContainsAny(c.ModelsPath, "?# ")):
		return errors.New("models_path must begin with a slash, end without one and hold no query")
	case c.APIKey != "" && c.AuthToken != "":
		return errors.New("api_key and auth_token cannot both be set")
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
		h.Set("X-Goog-Api-Key", c.APIKey.Reveal())
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
		Tools: true, ToolChoice: true, Vision: true, JSONSchema: true, Streaming: true, Seed: true,
		ContextWindow: 1_048_576,
	}
}
