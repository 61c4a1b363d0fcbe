package ollama

import (
	"cmp"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one Ollama server.
type Provider struct {
	*wire.Adapter
	url       string
	context   int
	keepAlive time.Duration
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
	p := &Provider{url: base.String() + "/api/chat", context: cfg.ContextTokens, keepAlive: cfg.KeepAlive}
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
		call.Accept = wire.AcceptNDJSON
	}
	call.Body, err = wire.Encode(body)
	return call, body.warnings, err
}
