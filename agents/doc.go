// Package agents shows each feature as an agent of the Synadia Agent Protocol
// for NATS (version 0.3), so that programs which discover and prompt agents can
// use a feature without knowing llmbus.
//
//	discovery  $SRV.INFO.agents ─────────────► one micro service "agents" for each feature
//	prompt     agents.prompt.llmbus.<owner>.<feature> ─► decode ─► Completer.Stream
//	                                                        │            │ frames
//	           reply: ack, response…, ack…, (error,) empty ◄┴────────────┘
//	liveness   agents.hb.llmbus.<owner>.<feature>, and the same on request on agents.status.…
//
// One prompt:
//
//	           decode: bad ─────────────────────────► error ─┐
//	           room: none ──────────────────────────► error ─┤
//	prompt ─► ack ─► response, response, … ─► end of answer ─┴► empty message
//	           │ ▲          │
//	           └─┘ ack      └─ broken off ──────────► error ─┘
//	        in each KeepAlive
//
// Invariants:
//   - A prompt with a reply subject that may be answered ends in exactly one
//     empty message without headers, and an error comes before it, at most one.
//   - Nothing but the responses of one answer is between the ack and the end:
//     the protocol cannot take back what was shown, so an answer that is begun
//     anew after its first text ends in an error, and so does one that a job
//     takes over.
//   - Answers go to inbox-shaped subjects only, since the caller chose the subject.
//
// A caller that is gone is noticed when an ack meets no subscriber, and takes
// its call with it. At the end of Run the services go first, what is in flight
// may end within Grace, and the rest is broken off.
//
// Requests are those of any other caller: the face has no slots, no retries and
// no policies of its own, only a bound on prompts at once.
package agents
