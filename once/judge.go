package once

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/llmbus/llmbus/llm"
)

// fate is what becomes of a key and of those who follow when a call ends.
type fate struct {
	response *llm.Response // kept
	err      *llm.Error    // kept; without either the key is free
	last     llm.Frame     // for those who follow
}

// lasting are the errors that the same request would get again. They are worth
// keeping only if a provider was asked, and may have billed for it.
var lasting = []llm.Code{llm.CodeInvalidRequest, llm.CodeContextLength, llm.CodeContentFiltered, llm.CodeTooLarge}

// judge decides the fate of a call. givenUp says that it ended for a reason of
// its own request req, such as a caller that went away. limit bounds the JSON of
// an answer that is kept.
func judge(req *llm.Request, resp *llm.Response, err error, givenUp bool, limit int) fate {
	switch {
	case err != nil && givenUp, err == nil && resp == nil: // the latter is a fault that the bus reports
		return released
	case err != nil:
		e := asError(err)
		f := fate{last: llm.Frame{Type: llm.FrameError, Error: e}}
		if len(e.Attempts) > 0 && slices.Contains(lasting, e.Code) {
			f.err = e
		}
		return f
	}
	shared := share(req, resp)
	f := fate{last: llm.Frame{Type: llm.FrameEnd, Response: shared}}
	if resp.ServedBy != llm.ServedByModel {
		return f
	}
	f.response = shared
	if text, err := json.Marshal(shared); err != nil || len(text) > limit {
		f.response = nil
		f.err = llm.Errorf(llm.CodeTooLarge, "the answer for this idempotency_key was given once and not kept, since it is larger than %d bytes", limit)
	}
	return f
}

// share is the answer without what belongs to the one request.
func share(req *llm.Request, resp *llm.Response) *llm.Response {
	shared := *resp
	shared.ID, shared.Metadata = "", nil
	if n := len(resp.Warnings) - len(req.Warnings); n >= 0 && slices.Equal(resp.Warnings[n:], req.Warnings) {
		shared.Warnings = resp.Warnings[:n:n]
	}
	return &shared
}

// released is the fate of a call that another request shall make anew.
var released = fate{last: llm.Frame{Type: llm.FrameError, Error: &llm.Error{Code: codeReleased, Message: "the call was released"}}}

// asError gives every error a code.
func asError(err error) *llm.Error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	return llm.ErrInternal
}
