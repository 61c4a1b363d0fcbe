package llm

import (
	"encoding/json"
	"errors"
)

// reply is what a reply subject gets: an answer, or {"error": …} alone.
type reply struct {
	Response
	Error *Error `json:"error"`
}

// AppendReply appends the wire form of the answer.
func (r *Response) AppendReply(dst []byte) ([]byte, error) {
	if r.plain() {
		return r.appendPlain(dst), nil
	}
	return appendValue(dst, r)
}

// AppendReply appends the wire form of the error, {"error": {…}}.
func (e *Error) AppendReply(dst []byte) ([]byte, error) {
	return appendValue(dst, struct {
		Error *Error `json:"error"`
	}{e})
}

// DecodeReply reads the payload of a reply. An error that the reply carries is
// returned as an *Error; any other error means that the payload is no reply.
func DecodeReply(data []byte) (*Response, error) {
	var r reply
	switch err := json.Unmarshal(data, &r); {
	case err != nil:
		return nil, errors.New("the message is not a reply")
	case r.Error != nil:
		return nil, r.Error
	case r.ServedBy == "":
		return nil, errors.New("the reply has neither served_by nor error")
	}
	return &r.Response, nil
}
