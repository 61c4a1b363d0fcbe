package ollama

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one Ollama server.
type Provider struct {
	client    *wire.Client
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
	return &Provider{
		client: wire.New(wire.Config{
			Header: cfg.header(), ConnectTimeout: cfg.ConnectTimeout, MaxIdleConns: cfg.MaxIdleConns, Now: cfg.Now,
		}),
		url: base.String() + "/api/chat", context: cfg.ContextTokens, keepAlive: cfg.KeepAlive,
	}, nil
}

// Close drops the connections that no call uses.
func (p *Provider) Close() { p.client.Close() }

// Complete makes one call and returns the whole answer.
func (p *Provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.client.Complete(ctx, req, p.api())
}

// Stream makes one call and yields the answer as it comes.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return p.client.Stream(ctx, req, p.api())
}

func (p *Provider) api() wire.API { return wire.API{Call: p.call, Read: read} }

func (p *Provider) call(req *llm.Request, stream bool) (wire.Call, []string, error) {
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
