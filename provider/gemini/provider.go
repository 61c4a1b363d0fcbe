package gemini

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one generateContent API.
type Provider struct {
	*wire.Adapter
	models string // the URL that a model's name is added to
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
	p := &Provider{models: base.String() + cmp.Or(cfg.ModelsPath, defaultModelsPath) + "/"}
	p.Adapter = wire.NewAdapter(wire.Config{
		Header: cfg.header(), ConnectTimeout: cfg.ConnectTimeout, MaxIdleConns: cfg.MaxIdleConns, Now: cfg.Now,
	}, wire.API{Call: p.call, Read: read})
	return p, nil
}

func (p *Provider) call(_ []byte, req *llm.Request, stream bool) (wire.Call, []string, error) {
	body, err := translate(req)
	if err != nil {
		return wire.Call{}, nil, err
	}
	method, call := ":generateContent", wire.Call{}
	if stream {
		method, call.Accept = ":streamGenerateContent?alt=sse", wire.AcceptSSE
	}
	call.URL = p.models + url.PathEscape(strings.TrimPrefix(req.Model, "models/")) + method
	call.Body, err = wire.Encode(body)
	return call, body.warnings, err
}
