package openai

import (
	"cmp"
	"net/url"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one server. It may be used by many goroutines at once.
type Provider struct {
	*wire.Adapter
	cfg  Config
	base url.URL
	door string // where calls go; empty if that depends on the model
}

var _ llm.Completer = (*Provider)(nil)

// New makes a Provider, or says which setting cannot apply.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Family = cmp.Or(cfg.Family, FamilyOpenAI)
	if cfg.MaxTokensField == "" {
		cfg.MaxTokensField = maxTokens
		if cfg.Family == FamilyOpenAI {
			cfg.MaxTokensField = maxCompletionTokens
		}
	}
	base, err := wire.ParseBase(cmp.Or(cfg.BaseURL, defaultBaseURL))
	if err != nil {
		return nil, err
	}
	p := &Provider{cfg: cfg, base: *base}
	p.Adapter = wire.NewAdapter(wire.Config{
		Header: cfg.header(), ConnectTimeout: cfg.ConnectTimeout, MaxIdleConns: cfg.MaxIdleConns, Now: cfg.Now,
	}, wire.API{Call: p.call, Read: p.read})
	if azure := cfg.Azure; azure == nil || azure.APIVersion == "" || cfg.API == APIResponses {
		p.door = p.url("")
	}
	return p, nil
}

// call translates the request.
func (p *Provider) call(buf []byte, req *llm.Request, stream bool) (wire.Call, []string, error) {
	encode := p.cfg.chatBody
	if p.cfg.API == APIResponses {
		encode = p.cfg.responsesBody
	}
	body, err := encode(buf, req, stream)
	if err != nil {
		return wire.Call{}, nil, err
	}
	call := wire.Call{URL: p.door, Body: body, Accept: wire.AcceptJSON}
	if call.URL == "" {
		call.URL = p.url(req.Model)
	}
	if stream {
		call.Accept = wire.AcceptSSE
	}
	return call, nil, nil
}

func (p *Provider) url(model string) string {
	u, door := p.base, "chat/completions"
	if p.cfg.API == APIResponses {
		door = "responses"
	}
	switch azure := p.cfg.Azure; {
	case azure == nil && u.Path == "":
		u.Path = "/v1"
	case azure == nil:
	case azure.APIVersion == "":
		u = *u.JoinPath("openai/v1")
	case p.cfg.API == APIResponses:
		u = *u.JoinPath("openai")
		u.RawQuery = "api-version=" + url.QueryEscape(azure.APIVersion)
	default:
		u = *u.JoinPath("openai/deployments", url.PathEscape(model))
		u.RawQuery = "api-version=" + url.QueryEscape(azure.APIVersion)
	}
	return u.JoinPath(door).String()
}
