// Package wire is what all provider adapters share of HTTP: one call without
// retries, the framings of streamed answers, and the table that turns an error
// answer into a *provider.Failure.
//
// A Client never sends a request twice: it follows no redirect, sets no
// idempotency header and gives net/http no way to rewind a body. It reads
// nothing without a bound. No text of the provider's leaves the package but the
// answer itself, error codes and request ids.
//
//	resp, err := client.Post(ctx, wire.Call{URL: u, Body: body, Accept: wire.AcceptSSE})
//	if err != nil { return err }       // a *provider.Failure: nothing answered
//	defer resp.Close()
//	if !resp.OK() { return resp.Failure() }
//	first, err := resp.First()         // '{', '[', '<' or the start of a stream
//
// An adapter that has read its answer whole calls resp.Done, so that Close keeps
// the connection for the next call; otherwise Close cuts the connection at once.
package wire
