package client

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// call is a request made ready to be sent, more than once if need be.
type call struct {
	id      string
	subject string
	header  nats.Header
	payload []byte

	resumable bool
}

// newCall checks what a worker could not tell us about, and encodes the request.
func (c *Client) newCall(req *llm.Request, stream bool) (*call, error) {
	if !subjects.ValidFeature(req.Feature) {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "feature must be %s", subjects.FeatureRule)
	}
	id := req.ID
	if id == "" {
		id = rand.Text()
	} else if !subjects.ValidRequestID(id) {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "id must be 1 to %d printable ASCII characters without space", subjects.MaxRequestID)
	}
	wire := *req
	wire.Stream, wire.StreamTo, wire.Resumable = stream, "", req.Resumable && stream
	payload, err := wire.AppendJSON(nil)
	if err != nil {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "the request cannot be written as JSON")
	}
	header := nats.Header{subjects.HeaderRequestID: {id}}
	if req.TraceParent != "" {
		header[subjects.HeaderTraceParent] = []string{req.TraceParent}
	}
	if c.claim != "" {
		header[subjects.HeaderTenant] = []string{c.claim}
	}
	return &call{id: id, subject: subjects.CompleteOf(req.Feature, c.tenant), header: header, payload: payload, resumable: wire.Resumable}, nil
}

// askForPings has the worker give three signs of life in each span of silence.
func (c *call) askForPings(silence time.Duration) {
	c.header[subjects.HeaderPingMS] = []string{strconv.FormatInt(max(1, silence.Milliseconds()/3), 10)}
}

// message is the request with the time that remains now.
func (c *call) message(ctx context.Context) (*nats.Msg, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ms := max(1, (left - wayBack(left)).Milliseconds())
	c.header[subjects.HeaderTimeoutMS] = []string{strconv.FormatInt(ms, 10)}
	return &nats.Msg{Subject: c.subject, Header: c.header, Data: c.payload}, nil
}

// wayBack is kept from the worker, so that its account of a deadline, with the
// history of its attempts, is here before the deadline is.
func wayBack(left time.Duration) time.Duration { return min(left/10, 100*time.Millisecond) }
