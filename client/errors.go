package client

import (
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// decodeReply reads a reply. What is no reply of a worker is still an error that
// says so, with the code of its headers if it has one.
func decodeReply(msg *nats.Msg) (*llm.Response, error) {
	resp, err := llm.DecodeReply(msg.Data)
	if err == nil {
		return resp, nil
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return nil, e
	}
	if text := msg.Header.Get(subjects.HeaderError); text != "" {
		return nil, llm.Errorf(llm.CodeInternal, "the service answered: %s", text)
	}
	return nil, llm.Errorf(llm.CodeInternal, "%w", err)
}

// translate makes an *llm.Error of what the connection says.
func (c *Client) translate(err error, msg *nats.Msg) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return llm.Errorf(llm.CodeUnavailable, "no worker takes %s: %w", msg.Subject, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return llm.Errorf(llm.CodeTooLarge, "the request is %d bytes, more than the %d bytes a message may hold", len(msg.Data), c.nc.MaxPayload())
	case errors.Is(err, nats.ErrDisconnected):
		return llm.Errorf(llm.CodeInterrupted, "the connection broke while the answer was awaited: %w", err)
	}
	return llm.Errorf(llm.CodeUnavailable, "asking over NATS: %w", err)
}

// broken makes an *llm.Error of a stream that stopped early. shown says whether
// the reader has seen a part of the answer.
func broken(err error, shown bool) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	if errors.Is(err, stream.ErrSilent) && !shown {
		return llm.Errorf(llm.CodeUnavailable, "no sign of a worker: %w", err)
	}
	return llm.Errorf(llm.CodeInterrupted, "the answer broke off: %w", err)
}
