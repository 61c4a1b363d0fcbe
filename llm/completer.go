package llm

import (
	"context"
	"iter"
)

// Completer answers a request. Providers, their decorators, the chain, the bus
// client and the scripted fake all share this shape, as HTTP middleware shares
// http.Handler, so that a new layer changes no caller.
//
// Both methods may be called by many goroutines at once. They must not modify
// req, which may be shared between attempts, and they return soon after ctx
// ends, with an error for which context.Cause(ctx) was the reason.
type Completer interface {
	// Complete returns the whole answer, or an error and no answer.
	Complete(ctx context.Context, req *Request) (*Response, error)

	// Stream yields the answer in pieces as they arrive.
	//
	// A stream that succeeds ends with one frame of type FrameEnd, whose
	// Response is complete. A non-nil error is the last thing yielded. An
	// iteration that ends without either is a truncated stream and must be
	// treated as a failure. Breaking out of the loop releases everything the
	// stream holds, such as the provider's socket.
	Stream(ctx context.Context, req *Request) iter.Seq2[Frame, error]
}
