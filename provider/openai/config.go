package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// API is the door of the server that is used.
type API string

const (
	APIChat      API = "chat"      // POST …/chat/completions
	APIResponses API = "responses" // POST …/responses
)

// Family is whose dialect is sent.
type Family string

const (
	FamilyOpenAI     Family = "openai"     // OpenAI and Azure: max_completion_tokens
	FamilyCompatible Family = "compatible" // the others: max_tokens, and no field that is not needed
	FamilyMistral    Family = "mistral"    // as compatible, with random_seed and tool call ids of nine letters and digits
)

// Azure makes the calls of a deployment on Azure OpenAI.
type Azure struct {
	APIVersion string // as in 2024-10-21; empty uses the /openai/v1 path, which has none
}

// Config of a Provider. Every field may be left zero.
type Config struct {
	BaseURL        string        // without a path, /v1 is added; empty is https://api.openai.com
	APIKey         wire.Secret   // empty sends none, as local servers want it
	Organization   string        // OpenAI-Organization
	Project        string        // OpenAI-Project
	Headers        http.Header   // sent with every call
	API            API           // empty is APIChat
	Family         Family        // empty is FamilyOpenAI
	Azure          *Azure        // set for Azure OpenAI; the model names the deployment
	MaxTokensField string        // max_tokens or max_completion_tokens; empty is the family's. Chat only
	NoStreamUsage  bool          // the server does not know stream_options. Chat only
	ConnectTimeout time.Duration // 0 is wire's default
	MaxIdleConns   int           // 0 is wire's default

	Now func() time.Time // for dates in Retry-After; nil is time.Now
}

const (
	defaultBaseURL      = "https://api.openai.com"
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// Validate says which setting cannot apply.
func (c *Config) Validate() error {
	_, err := wire.ParseBase(cmp.Or(c.BaseURL, defaultBaseURL))
	switch {
	case err != nil:
		return err
	case c.Azure != nil && c.BaseURL == "":
		return errors.New("base_url must be set for azure")
	case c.API != "" && c.API != APIChat && c.API != APIResponses:
		return fmt.Errorf("api must be %s or %s", APIChat, APIResponses)
	case c.Family != "" && c.Family != FamilyOpenAI && c.Family != FamilyCompatible && c.Family != FamilyMistral:
		return fmt.Errorf("family must be %s, %s or %s", FamilyOpenAI, FamilyCompatible, FamilyMistral)
	case c.MaxTokensField != "" && c.MaxTokensField != maxTokens && c.MaxTokensField != maxCompletionTokens:
		return fmt.Errorf("max_tokens_field must be %s or %s", maxTokens, maxCompletionTokens)
	case c.API == APIResponses && (c.MaxTokensField != "" || c.NoStreamUsage):
		return errors.New("max_tokens_field and no_stream_usage do not apply to api: responses")
	case c.ConnectTimeout < 0:
		return errors.New("connect_timeout must not be negative")
	case c.MaxIdleConns < 0:
		return errors.New("max_idle_conns must not be negative")
	}
	if err := wire.CheckHeader(c.Headers); err != nil {
		return err
	}
	return wire.CheckHeader(c.header()) // keys must be fit to be sent, too
}

// header is what every call carries.
func (c *Config) header() http.Header {
	h := http.Header{}
	for name, values := range c.Headers {
		h[http.CanonicalHeaderKey(name)] = values
	}
	switch {
	case c.APIKey == "":
	case c.Azure != nil:
		h.Set("Api-Key", c.APIKey.Reveal())
	default:
		h.Set("Authorization", "Bearer "+c.APIKey.Reveal())
	}
	if c.Organization != "" {
		h.Set("OpenAI-Organization", c.Organization)
	}
	if c.Project != "" {
		h.Set("OpenAI-Project", c.Project)
	}
	return h
}

// Capabilities is what models behind this API can do, unless a target's own
// settings say otherwise. Of a compatible server little is certain.
func (c *Config) Capabilities() provider.Capabilities {
	caps := provider.Capabilities{Streaming: true, Tools: true, Seed: c.API != APIResponses}
	if cmp.Or(c.Family, FamilyOpenAI) == FamilyOpenAI {
		caps.ToolChoice, caps.Vision, caps.ImageURLs, caps.JSONSchema = true, true, true, true
	}
	return caps
}
