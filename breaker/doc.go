// Package breaker is the circuit breaker of a target, one for the whole fleet:
// a pure machine that decides, in a shell that shares what it decided through
// KV.
//
//	         Threshold failures within Window, over the fleet
//	┌────────┐ ───────────────────────────────────────────────▶ ┌────────┐
//	│ closed │                                                  │  open  │
//	└────────┘ ◀─────────────┐                     ┌──────────▶ └────────┘
//	 │      ▲                │ probe succeeds      │ probe fails:   │
//	 │ Cool │ its wait       │                     │ twice the      │ cool-down over,
//	 ▼      │ is over        │                     │ cool-down;     │ a caller comes and
//	┌─────────┐              │                     │ neutral: same, │ wins the lease
//	│ cooling │         ┌───────────┐              │ next one soon  │
//	└─────────┘         │ half_open │ ─────────────┘                │
//	 fails as closed    └───────────┘ ◀─────────────────────────────┘
//	 does                 ▲       │ lease over without a result:
//	                      └───────┘ another caller wins it
//
// Every arrow but the end of a cooling is one write in llm_breakers by
// compare-and-swap and raises the generation by one. The escalation of the
// cool-down ends when the breaker has stayed closed for one Window. Cooling is
// a state of its own, "cooling", and not a failure: a provider said how long to
// leave it alone, so its end needs no probe. Failures that come in while
// cooling, from calls in flight, count as they do while closed.
//
// # Invariants
//
//   - Open, half_open and cooling admit nobody, but for the one probe. Expiry
//     of a cool-down proves nothing.
//   - The right to probe is the lease in llm_probes and, on top of it, the
//     half_open record in llm_breakers against the revision that was open. So a
//     worker that is late to learn of a finished probe wins the free lease and
//     then loses the compare-and-swap: one probe in one generation.
//   - Only the success of the probe of this very generation closes. A result
//     is written against the revision of the half_open record, so an owner that
//     outlived its lease writes nothing over a newer generation. The lease is
//     given back after the result, by its own revision.
//   - A permit of an older epoch has no say: failures of calls admitted before
//     the breaker opened lengthen nothing and open nothing afterwards.
//   - Success costs nothing: no message, no write, no lock.
//   - No lock is held over I/O, and one goroutine at a time writes a key.
//   - No two machines' clocks are compared. The age of a record is the server's
//     word, and the rest is measured by the local monotonic clock.
//
// # Counting
//
// A failure counts here at once and is announced on llm.failures.<key>, where
// every other worker counts it. Whoever reaches Threshold is open at once and
// writes; those who reached it by hearing wait a moment for the writer's push.
// An open breaker announces nothing, so an outage costs a worker at most
// Threshold messages. Whoever may publish on llm.failures.> may open breakers.
//
// # When things fail
//
//   - The prober dies: its lease ends by TTL. The others have timed it and
//     try again every 100 ms from then on.
//   - KV cannot be reached (no fresh mirror, or calls fail for two seconds):
//     Degraded. Each worker counts alone, opens alone and sends its own single
//     probe. What it decided is pending. Once the mirror is fresh again every
//     pending key is written once, at a random instant within 1.5 s. The first
//     open one wins and its push settles the others; an open view yields to a
//     closed record only if that was stored later.
//   - A key that is missing is no shared opinion: a breaker that is open here
//     stays so. A delete marker (nats kv del llm_breakers <key>) is an
//     operator's word and closes the breaker at every worker that gets it.
//   - A value that is no record is reported in the log and changes nothing; the
//     next transition overwrites it. An operator may put a record by hand, for
//     which {"state":"open","why":"incident","cool_down_ms":600000} is enough.
//   - Run has not begun: Degraded. Run ends: what is pending is written within
//     2 s, and a probe still out is left to its lease.
package breaker
