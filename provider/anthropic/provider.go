package anthropic

import (
	"cmp"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one Messages API.
type Provider struct {
	*wire.Adapter
	url       string
	maxTokens int
}

var _ llm.Completer = (*Provider)(nil)

// New makes a Provider, or says which setting is wrong.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	base, err := wire.ParseBase(cmp.Or(cfg.BaseURL, defaultBaseURL))
	if err != nil {
		return nil, err
	}
	p := &Provider{url: base.String() + "/v1/messages", maxTokens: cmp.Or(cfg.DefaultMaxTokens, defaultMaxTokens)}
	p.Adapter = wire.NewAdapter(wire.Config{
		Header: cfg.header(), ConnectTimeout: cfg.ConnectTimeout, MaxIdleConns: cfg.MaxIdleConns, Now: cfg.Now,
	}, wire.API{Call: p.call, Read: read})
	return p, nil
}

func (p *Provider) call(_ []byte, req *llm.Request, stream bool) (wire.Call, []string, error) {
	body, err := p.translate(req)
	if err != nil {
		return wire.Call{}, nil, err
	}
	call := wire.Call{URL: p.url}
	if body.Stream = stream; stream {
		call.Accept = wire.AcceptSSE
	}
	call.Body, err = wire.Encode(body)
	return call, body.warnings, err
}
