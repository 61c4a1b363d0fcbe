// Package once lets all requests with one idempotency key share one call and
// its answer, on whichever worker they land.
//
// A key belongs to a tenant and a feature. Its record in the bucket:
//
//	         Create                     Update                     window over
//	(none) ─────────► running, of a call ─────────► done, with answer ─────► (none)
//	  ▲                 │      │    ▲
//	  └─────────────────┘      └────┘
//	   Delete: the call failed   Update: the call's worker is gone,
//	   or was given up           and a request that waited calls anew
//
// Every step names the revision that it replaces, so that of all workers that
// try one succeeds. A request that finds the record running asks the worker of
// the call on llm.follow.<worker>; the worker sends it, by unicast, the text so
// far and then each frame as it comes. Nothing is published while nobody asks.
//
// Nobody renews a lease: the worker of a call is asked, not timed. It is gone
// when it says that it does not have the call, or when it has said nothing for
// Patience to somebody who was connected all the while and asked again.
//
// Invariants:
//
//   - Without a key nothing is written, read or allocated here.
//   - A call begins only after its record was written, and can be followed before.
//   - An answer is given only after the record holds it or, where the bucket cannot
//     be reached for a second, while its worker remembers it and tries for a
//     minute to have it kept.
//   - A request with another body is never answered from the record.
//   - Frames come to those who follow without gap or repeat. Once text was shown
//     to a reader, it is never followed by the text of another call.
//
// What a call that ends leaves behind:
//
//	an answer of a model           kept, up to MaxAnswer; a larger one leaves too_large
//	an error that would come again kept, if a provider was asked (see judge)
//	any other error, a fallback    nothing: the key is free; those who follow get it too
//	given up: cancelled, out of    nothing: the key is free; one of those who follow
//	time, worker stopped           makes the call
//
// When things fail:
//
//   - The worker dies: those who follow hear nothing for Patience, and one of
//     them makes the call. A reader that was shown text already is told that the
//     answer broke off, and the key is free.
//   - KV is out of reach: a request with a key is refused as unavailable after
//     some seconds, since its caller asked for no second call.
//   - The worker is cut off for longer than Patience and lives: another makes a
//     second call. Its own caller gets the first answer, everybody else the second.
package once
