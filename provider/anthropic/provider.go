package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// Provider makes calls to one Messages API.
type Provider struct {
	client    *wire.Client
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
	return &Provider{
		client: wire.New(wire.Config{
			Header: cfg.header(), ConnectTimeout: cfg.ConnectTimeout, MaxIdleConns: cfg.MaxIdleConns, Now: cfg.Now,
		}),
		url:       base.String() + "/v1/messages",
		maxTokens: cmp.Or(cfg.DefaultMaxTokens, defaultMaxTokens),
	}, nil
}

// Close drops the connections that no call uses.
func (p *Provider) Close() { p.client.Close() }

// Complete makes one call and returns the whole answer.
func (p *Provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	body, warnings, err := p.encode(req, false)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Post(ctx, wire.Call{URL: p.url, Body: body})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	if !resp.OK() {
		return nil, resp.Failure()
	}
	data, err := resp.ReadAll()
	if err != nil {
		return nil, err
	}
	return newReader(resp, req, warnings).whole(data, discard)
}

// discard takes the frames of an answer that is wanted whole.
func discard(llm.Frame, error) bool { return true }

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
	body, warnings, err := p.encode(req, true)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Post(ctx, wire.Call{URL: p.url, Body: body, Accept: wire.AcceptSSE})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	if !resp.OK() {
		return nil, resp.Failure()
	}
	r := newReader(resp, req, warnings)
	switch first, err := resp.First(); {
	case err != nil:
		return nil, err
	case first == '<':
		return nil, resp.Broken(wire.ErrBroken)
	case first == '{': // an error, or a gateway that does not stream
		data, err := resp.ReadAll()
		if err != nil {
			return nil, err
		}
		return r.whole(data, yield)
	}
	return r.events(yield)
}

// encode translates a request to the body of a call.
func (p *Provider) encode(req *llm.Request, stream bool) (body []byte, warnings []string, err error) {
	translated, err := p.translate(req)
	if err != nil {
		return nil, nil, err
	}
	translated.Stream = stream
	if body, err = json.Marshal(translated); err != nil {
		return nil, nil, provider.Fail(llm.OutcomeInvalidRequest, errUnencodable)
	}
	return body, translated.warnings, nil
}
