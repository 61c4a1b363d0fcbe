// Package wire is what all provider adapters share: one call over HTTP without
// retries, the framings of streamed answers, the gathering of an answer from its
// pieces, and the table that turns an error answer into a *provider.Failure.
//
// A Client never sends a request twice: it follows no redirect and sets no
// idempotency header, and its connections (package http1) do not repeat what a
// peer may have read. It reads nothing without a bound. No text of the provider's leaves the package but the
// answer itself, error codes and request ids.
//
// An adapter is the two functions of an API: one writes the request, the other
// says what the answer means.
//
//	wire.NewAdapter(wire.Config{}, wire.API{
//		Call: func(req *llm.Request, stream bool) (wire.Call, []string, error) { … },
//		Read: func(a *wire.Answer, req *llm.Request) (*llm.Response, error) {
//			err := a.Read(whole, event) // which call a.Say, a.Think and a.Send
//			…
//			return a.Response(finish), nil
//		},
//	})
//
// An answer that was read to its end leaves its connection to the next call; what
// is left before that cuts it at once.
package wire
