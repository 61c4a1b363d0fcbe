package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// API is how one provider writes requests and answers.
type API struct {
	// Call translates a request. The warnings name hints that were left out.
	Call func(req *llm.Request, stream bool) (call Call, warnings []string, err error)
	// Read reads the answer and judges it. What the Response says of the model's
	// version and the request's id is checked afterwards.
	Read func(a *Answer, req *llm.Request) (*llm.Response, error)
}

// Complete makes one call and returns the whole answer.
func (c *Client) Complete(ctx context.Context, req *llm.Request, api API) (*llm.Response, error) {
	return c.ask(ctx, req, api, &Answer{emit: discard})
}

// Stream makes one call and yields the answer as it comes.
func (c *Client) Stream(ctx context.Context, req *llm.Request, api API) iter.Seq2[llm.Frame, error] {
	return Frames(func(emit Emit) (*llm.Response, error) {
		return c.ask(ctx, req, api, &Answer{emit: emit, Stream: true})
	})
}

func (c *Client) ask(ctx context.Context, req *llm.Request, api API, a *Answer) (*llm.Response, error) {
	call, warnings, err := api.Call(req, a.Stream)
	if err != nil {
		return nil, err
	}
	if a.Resp, err = c.PostOK(ctx, call); err != nil {
		return nil, err
	}
	defer a.Resp.Close()
	r, err := api.Read(a, req)
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
