// Package provider is the seam to models: what every adapter promises, what a
// model can do, how a call fails, and the time limits around one call.
//
// An adapter is an llm.Completer that makes exactly one call on the wire for
// each Complete or Stream and never retries. It translates the request it is
// given whole, or fails with OutcomeInvalidRequest and DetailUnsupported: it
// never drops a part in silence. Every error it returns is a *Failure. It
// judges whether an answer is complete and not empty; whether the answer fits
// the request (schema, tool arguments) is judged by package chain.
//
// An adapter yields FrameDelta, FrameToolCall and FrameReasoning frames and,
// last, FrameEnd with the whole Response, text included. It sets neither Seq nor
// Attempt, Provider, Cost or Timing: those belong to the layers above.
package provider
