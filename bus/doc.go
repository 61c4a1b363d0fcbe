// Package bus takes requests from NATS, hands them to an llm.Completer and
// answers them.
//
// One request:
//
//	message ─► slot? ──no──► busy
//	             │yes
//	             ▼
//	          decode ─► admit (id, headers, deadline, where answers go) ──no──► refusal
//	                      │yes
//	                      ▼
//	                 Complete or Stream ─► one terminal message
//
// The worker's place in the queue group:
//
//	        full for FullFor                         ctx ends
//	joined ─────────────────► away          any ─────────────────► draining ─► stopped
//	   ▲                        │
//	   └────────────────────────┘
//	  below 3/4 of the slots for CalmFor
//
// A worker that comes back and is full again within 10 s is too slow for its
// share. It then stays away longer, 2 s and doubling up to 30 s, and leaves after
// a quarter of FullFor, as long as some
// other worker says on llm.status that it has room; if none has, the whole fleet
// is overloaded and everybody is needed.
//
// When its server says that it is about to leave (lame duck), the worker leaves
// the group, has the connection made anew to another server, and joins again,
// all within a few round trips. What is under way goes on.
//
// With tenants, one of them may hold at most four slots for each that is free; see
// shares. So the flood of one neither keeps others out nor makes the worker leave.
//
// It leaves the group by draining the subscription, so that no request is lost
// on the way; when the last worker has left, NATS answers no-responders.
//
// Invariants:
//   - A request that can be answered gets exactly one terminal message, whatever
//     happens: a panic of the Completer, a Completer that ignores its context, an
//     answer larger than a message, or the end of the worker. A stream to a
//     subject has two readers, so there the stream and the reply subject end with
//     one each.
//   - Answers go to inbox-shaped subjects only, since the caller chose the subject.
//   - The Completer is not called for what nobody could receive, nor when the
//     deadline has passed on arrival.
//   - A request id of a caller is active once at a time on a worker. A second
//     request with an active id is refused as invalid_request on its own reply
//     subject, and the stream of the first is left alone. A refused request was
//     never admitted, so the same id may be sent again after busy. (Whether two
//     workers do the same work is a question for idempotency keys.)
//
// A request that is refused before it was admitted has no stream: the error
// goes to its reply subject, in the form of a one-frame stream if the request
// asks for the stream there. Only without a reply subject does the error go to
// the stream of its id.
//
// A caller that is gone is noticed in two ways. It, or anybody, publishes to
// llm.cancel.<request-id>; or a ping meets no subscriber, which the server
// reports to the ping's reply subject. Pings to llm.stream.<id> ask for that
// report, unless nobody ever listened there and the caller waits on its reply
// subject alone. Pings to a reply inbox ask for it too, if the inbox is of the
// caller's own account: a client's shared inbox outlives a request, so no report
// proves nothing there, but a report proves that the client is gone. The inboxes
// that a server makes for imports and gateways (_R_, _GR_) are not asked.
//
// A resumable answer is not cancelled for want of a reader. Its frames go to
// llm.replay.<id> as well, where Config.Replay finds them, and from its first
// ping on any worker serves readers that ask on llm.resume.<id>: a relay
// listens to that subject, sends what is kept from the wanted frame on, then what
// comes, and reads again what passed it by.
//
//	            listen
//	              │
//	              ▼      nothing kept: unknown_request
//	   ┌──► read what is kept ───────────────────────► refused
//	gap│          │
//	   │          ▼      last frame                    the worker ends
//	   └──── pass on what comes ──► empty message ◄── without that frame
//
// A relay never sends a frame twice once it has sent text, and none but the next
// one. It counts as a request in flight at shutdown, and takes no slot; a worker
// that has left the group of requests still serves readers.
//
// Time that a message spent in the client's queue is not known. It is short,
// since that queue is emptied without waiting; time in the server's queues counts
// for the caller alone, who sends what remains in Llm-Timeout-Ms.
package bus
