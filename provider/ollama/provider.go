package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
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
	return p.ask(ctx, req, false, wire.Discard)
}

// Stream makes one call and yields the answer as it comes.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return wire.Frames(func(emit wire.Emit) (*llm.Response, error) { return p.ask(ctx, req, true, emit) })
}

// ask makes the one call.
func (p *Provider) ask(ctx context.Context, req *llm.Request, stream bool, emit wire.Emit) (*llm.Response, error) {
	translated, err := p.translate(req)
	if err != nil {
		return nil, err
	}
	call := wire.Call{URL: p.url}
	if stream {
		translated.Stream, call.Accept = true, wire.AcceptNDJSON
	}
	if call.Body, err = json.Marshal(translated); err != nil {
		return nil, provider.Fail(llm.OutcomeInvalidRequest, errUnencodable)
	}
	resp, err := p.client.PostOK(ctx, call)
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	r := &reader{resp: resp, emit: emit}
	if stream {
		err = r.lines()
	} else {
		err = r.whole()
	}
	if err != nil {
		return nil, err
	}
	answer, err := r.conclude(req.Model)
	if err != nil {
		return nil, err
	}
	answer.Warnings = translated.warnings
	return answer, nil
}

// errUnencodable hides what encoding/json quotes of a request.
var errUnencodable = errors.New("a tool or a schema is not valid JSON")
