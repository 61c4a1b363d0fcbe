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
	r, err := p.call(ctx, req, ":generateContent", wire.AcceptJSON)
	if err != nil {
		return nil, err
	}
	defer r.resp.Close()
	data, err := r.resp.ReadAll()
	if err != nil {
		return nil, err
	}
	if _, err := r.take(data, func(llm.Frame, error) bool { return true }); err != nil {
		return nil, err
	}
	return r.conclude()
}

// Stream makes one call and yields the answer as it comes.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		answer, err := p.stream(ctx, req, yield)
		switch {
		case err != nil:
			yield(llm.Frame{}, err)
		case answer != nil:
			yield(llm.Frame{Type: llm.FrameEnd, Response: answer}, nil)
		}
	}
}

// stream returns the answer after yielding its pieces, or nothing at all if the
// reader went away.
func (p *Provider) stream(ctx context.Context, req *llm.Request, yield func(llm.Frame, error) bool) (*llm.Response, error) {
	r, err := p.call(ctx, req, ":streamGenerateContent?alt=sse", wire.AcceptSSE)
	if err != nil {
		return nil, err
	}
	defer r.resp.Close()
	next, err := objects(r.resp)
	if err != nil {
		return nil, err
	}
	for {
		data, err := next()
		if err != nil && r.reason == "" {
			return nil, r.resp.Broken(err)
		}
		if err != nil {
			break // all that counts has come
		}
		more, err := r.take(data, yield)
		if errors.Is(err, errDone) {
			break
		}
		if err != nil || !more {
			return nil, err
		}
	}
	r.resp.Done()
	return r.conclude()
}

// objects returns what reads the next object of a stream, in the framing that
// its first byte shows.
func objects(resp *wire.Response) (func() ([]byte, error), error) {
	switch first, err := resp.First(); {
	case err != nil:
		return nil, err
	case first == '<':
		return nil, resp.Broken(wire.ErrBroken)
	case first == '[' || first == '{':
		return resp.Array().Next, nil
	}
	events := resp.SSE()
	return func() ([]byte, error) {
		event, err := events.Next()
		return event.Data, err
	}, nil
}

// call sends a request and returns the reader of its answer, which is a good
// one as far as its status goes. The caller closes the reader's resp.
func (p *Provider) call(ctx context.Context, req *llm.Request, method, accept string) (*reader, error) {
	translated, err := translate(req)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(translated)
	if err != nil {
		return nil, provider.Fail(llm.OutcomeInvalidRequest, errUnencodable)
	}
	target := p.models + url.PathEscape(strings.TrimPrefix(req.Model, "models/")) + method
	resp, err := p.client.Post(ctx, wire.Call{URL: target, Body: body, Accept: accept})
	if err != nil {
		return nil, err
	}
	if !resp.OK() {
		defer resp.Close()
		return nil, resp.Failure()
	}
	return &reader{resp: resp, warnings: translated.warnings}, nil
}

// errUnencodable hides what encoding/json quotes of a request.
var errUnencodable = errors.New("a tool or a schema is not valid JSON")
