package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one generateContent API.
type Provider struct {
	client *wire.Client
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
	return &Provider{
		client: wire.New(wire.Config{
			Header: cfg.header(), ConnectTimeout: cfg.ConnectTimeout, MaxIdleConns: cfg.MaxIdleConns, Now: cfg.Now,
		}),
		models: base.String() + cmp.Or(cfg.ModelsPath, defaultModelsPath) + "/",
	}, nil
}

// Close drops the connections that no call uses.
func (p *Provider) Close() { p.client.Close() }

// Complete makes one call and returns the whole answer.
func (p *Provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	call := wire.Call{URL: p.url(req.Model, ":generateContent")}
	return p.ask(ctx, req, call, wire.Discard)
}

// Stream makes one call and yields the answer as it comes.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	call := wire.Call{URL: p.url(req.Model, ":streamGenerateContent?alt=sse"), Accept: wire.AcceptSSE}
	return wire.Frames(func(emit wire.Emit) (*llm.Response, error) { return p.ask(ctx, req, call, emit) })
}

func (p *Provider) url(model, method string) string {
	return p.models + url.PathEscape(strings.TrimPrefix(model, "models/")) + method
}

// ask makes the one call.
func (p *Provider) ask(ctx context.Context, req *llm.Request, call wire.Call, emit wire.Emit) (*llm.Response, error) {
	translated, err := translate(req)
	if err != nil {
		return nil, err
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
	if call.Accept == wire.AcceptSSE {
		err = r.pieces()
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
