// Package client asks llmbus from Go: an llm.Completer over a NATS connection,
// whose Request.Feature names the feature.
//
// What it does beyond publishing and waiting:
//
//   - The context's deadline travels with the request, a little shortened, so
//     that the worker's own account of a deadline arrives in time. Without a
//     deadline WithTimeout's applies.
//   - When the context ends first, llm.cancel.<id> is published and
//     context.Cause(ctx) is returned.
//   - busy and no-responders are tried again as long as the wait fits the
//     deadline and WithAdmission's time: twice within milliseconds, since another
//     worker may have room, and then with growing and random waits that honour
//     Retry-After. Neither reached a model.
//   - Signs of life are asked for, three in each WithSilence, if the deadline is
//     further away than that. A request whose worker falls silent before anything
//     of an answer came is cancelled and sent again under the same id,
//     WithRedispatch times at most; after that it is unavailable, and with a part
//     shown it is interrupted. Nothing else is tried again.
//   - Failures that a worker reports are *llm.Error values, as are those that
//     this side finds: unavailable (nobody serves) and interrupted (a worker
//     died or frames were lost).
//
// Stream listens before it asks, on one connection, so that no frame is missed.
// A start frame with a higher Attempt than before tells the reader to discard
// what it has shown: the worker began the answer anew. Pings are not passed on;
// when they fail to come, the worker is taken for dead after WithSilence.
//
// Frames that are lost on the way are not guessed at: from the gap on nothing is
// shown until the whole answer comes on the reply subject. If what was shown is
// its beginning, the rest is yielded as one delta; otherwise the stream fails
// with code interrupted. With Request.Resumable they are fetched instead, and
// after a reconnect too, so that the stream goes on where it was; only if that
// fails is the reply waited for. Resume reads such an answer from any
// connection.
package client
