// Package gateway is the OpenAI-compatible door: an HTTP server that is a NATS
// client like any other.
//
//	POST /v1/chat/completions ─► key ─► tenant          200, or an OpenAI error
//	        │                                                   ▲
//	        ▼                                                   │
//	   OpenAI body ─► llm.Request ─► client.Complete ───► whole answer
//	                                 client.Stream ──┐
//	                                                 ▼
//	        waiting ── first text ──► headers, one event for each frame ──► [DONE]
//	           │                                     │
//	           │ error: HTTP status                  │ error: an error event, then
//	           ▼                                     ▼ the connection is cut
//	         refused                               broken off
//
// A model is a feature. A key belongs to a tenant, in whose name the request is
// published.
//
// Invariants:
//
//   - One request makes one call of the client, which tries again only what no
//     model has begun; the gateway itself tries nothing again.
//   - The status of a stream is not sent before something of the answer is
//     there, or HoldHeaders has passed: until then an error has a status of its
//     own, which is what callers decide by.
//   - A stream that looks whole is whole: [DONE] follows the end of the answer
//     and nothing else. A stream that began is broken off with an error event and
//     without the end of its body, for those who do not read events.
//   - A caller that goes away, or does not read for WriteTimeout, takes its call
//     to the provider with it.
//   - x-should-retry is true for what may go well the next time and false for
//     everything else, since the chain has already tried what could be tried.
//   - Without keys only loopback addresses are served, to no page of another
//     origin.
//
// At shutdown the listener closes, what is in flight may end within Grace, and
// what remains is broken off as above.
package gateway
