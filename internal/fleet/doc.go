// Package fleet is one live picture of all workers, put together from what they
// say on NATS, for people to look at.
//
//	llm.events.>            ─► requests a second, failovers, latency, cost, last events
//	llm_breakers, llm_flags ─► states and switches, as they change (mirrors fed by push)
//	llm.status              ─► workers, features, how many see a breaker so; every 2 s,
//	                           and at once after a change of a breaker or a switch
//	LLM_JOBS, LLM_DEAD      ─► how many jobs wait and were given up; every 2 s
//	llm_usage               ─► what the day cost, over all workers; every 10 s
//
// A Watch holds the picture and View copies it. Run asks and listens until its
// ctx ends; before that, and while NATS is away, the picture is empty or old and
// says so.
//
// Invariants:
//
//   - Nothing of this is on the way of a request. A Watch publishes nothing but
//     its questions on llm.status.
//   - Memory is bounded whatever comes: 120 seconds of counts, 64 features with
//     counts of their own, 1,000 workers, 60 events, texts of 200 bytes.
//   - A state of a breaker is the stored record where there is one that is fresh;
//     otherwise it is what most workers say.
//   - No two machines' clocks are compared: the time to a probe is the server's
//     age of the record and local time since then.
//
// When things fail:
//
//   - NATS is away: all parts are named in View.Stale and keep what they showed.
//   - JetStream or a bucket is away, or was never made: switches, breakers or
//     jobs are stale. Breakers then show what the workers say.
//   - The connection may not hear events: traffic and last events are stale, and it
//     tries again every 30 s.
//   - A worker is silent for three questions: it is shown as silent, and left out
//     after half a minute.
//   - Events come faster than they are counted: NATS drops some, and
//     Traffic.Missed says how many.
package fleet
