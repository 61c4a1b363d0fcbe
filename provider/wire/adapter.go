package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// API is how one provider writes requests and answers.
type API struct {
	// Call translates a request. Its body may be appended to buf, which a later
	// call has again. The warnings name hints that were left out.
	Call func(buf []byte, req *llm.Request, stream bool) (call Call, warnings []string, err error)
	// Read reads the answer and judges it. What the Response says of the model's
	// version and the request's id is checked afterwards.
	Read func(a *Answer, req *llm.Request) (*llm.Response, error)
}

// Adapter makes calls to one API. It may be used by many goroutines at once.
type Adapter struct {
	client *Client
	api    API
	bodies sync.Pool // of *[]byte
}

var _ llm.Completer = (*Adapter)(nil)

// NewAdapter makes an Adapter with connections of its own.
func NewAdapter(cfg Config, api API) *Adapter {
	return &Adapter{client: New(cfg), api: api, bodies: sync.Pool{New: func() any { return new([]byte) }}}
}

// Close drops the connections that no call uses.
func (p *Adapter) Close() { p.client.Close() }

// Complete makes one call and returns the whole answer.
func (p *Adapter) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.ask(ctx, req, &Answer{emit: discard})
}

// Stream makes one call and yields the answer as it comes.
func (p *Adapter) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return Frames(func(emit Emit) (*llm.Response, error) {
		return p.ask(ctx, req, &Answer{emit: emit, Stream: true})
	})
}

func (p *Adapter) ask(ctx context.Context, req *llm.Request, a *Answer) (*llm.Response, error) {
	body := new([]byte)
	if !a.Stream { // which may last, and would hold on to the buffer of a longer request
		body = p.bodies.Get().(*[]byte)
		defer p.bodies.Put(body) // after Close, which is when nobody reads it any more
	}
	call, warnings, err := p.api.Call((*body)[:0], req, a.Stream)
	if err != nil {
		return nil, err
	}
	if cap(call.Body) <= 4*maxKept {
		*body = call.Body
	}
	if a.Resp, err = p.client.PostOK(ctx, call); err != nil {
		return nil, err
	}
	defer a.Resp.Close()
	r, err := p.api.Read(a, req)
	if err != nil {
		return nil, err
	}
	r.Model, r.ModelVersion, r.Warnings = req.Model, a.Resp.Version(r.ModelVersion, req.Model), warnings
	r.ProviderRequestID = cmp.Or(a.Resp.RequestID(), a.Resp.CleanID(r.ProviderRequestID))
	return r, nil
}

// Encode makes the body of a call.
func Encode(body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, provider.Fail(llm.OutcomeInvalidRequest, errUnencodable)
	}
	return data, nil
}

// errUnencodable hides what encoding/json quotes of a request.
var errUnencodable = errors.New("a tool or a schema is not valid JSON")
