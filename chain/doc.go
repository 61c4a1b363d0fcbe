// Package chain decides who is asked, for how long, and what comes next.
//
// A Router holds one pipeline for each feature. A request passes these stages,
// one file each, all of the shape llm.Completer:
//
//	observed   one log line and the events of the request
//	fallback   the feature's substitute when nothing served, which may be a job
//	switched   kill switches
//	limited    what the tenant may use; absent without a Limiter
//	Chain      the targets in order, under one deadline
//
// Chain makes attempts:
//
//	          ┌────────── retry, after a wait that fits the deadline ───────────┐
//	          ▼                                                                 │
//	pick a usable target ─► breaker ─► call, timed ─► validate ─► decide ─► done, stop
//	          ▲                │ refused                              │
//	          └────────────────┴───────────── next target ────────────┘
//
// Decisions are functions of values: decide reads the failure table in
// table.go, share divides the remaining time. Nothing here knows NATS or HTTP.
//
// Invariants: one deadline for the whole operation, out of which retries and
// waits come; a target is never called unless it may see the request's data and
// declares what the request needs, its breaker admits the call and no switch
// forbids it; targets are chosen from a list that is made once, so that nothing
// later can add one; after the first visible frame of a stream there is no silent
// change of target; a call has one outcome and its breaker hears of it once, at
// the end.
//
// A feature with Audit takes notes on every target as its requests pass (trail);
// Explain goes the same way up to the first call.
package chain
