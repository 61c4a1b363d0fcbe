// Package conformance judges, over NATS, whether a worker or a client in any
// language keeps to the protocol.
//
// Worker sends requests to live workers and judges all that comes back:
//
//	fixtures/exchanges.json, fixtures/request.json ─► llm.complete.<feature> ─► workers
//	                                                                               │
//	schemas, order of frames, headers, one end ◄── reply subject, llm.stream.<id> ─┘
//
// Client plays the worker, well and badly, and judges what the client under test
// makes of it. That client is a program which takes a Task at a time on a
// control subject, carries it out as it would for its own user, and answers with
// a Report:
//
//	Task ─► client under test ─► llm.complete.<feature> ─► fixtures/scripts.json, played
//	                 │                                           │
//	Report ◄─────────┘ ◄───── frames, replies, silence ──────────┘
//
// Nothing here uses the worker or the client of this repository: the judge reads
// messages by the published schemas and by the rules of docs/protocol.md.
//
// A run never fails as a whole for what is judged: each check gives a Result.
// Its errors name the place and the rule, never content.
package conformance

// Version is that of the protocol which this kit judges.
const Version = "1.0.0"
