// Package usage totals the requests, tokens and dollars of each UTC day by
// tenant, feature, provider and model, in memory and in the llm_usage bucket.
//
//	chain ──► a total in memory ──every second──► <day>.<tenant>.<feature>.<provider>.<model>.<worker>
//	                                                                   │
//	                                              Read adds up what all workers put there
//
// Invariants:
//
//   - A worker is the only writer of its keys, and a key holds the total so far:
//     to put it again is harmless, and nobody compares or swaps.
//   - A call adds to memory under a lock that is never held over I/O, whatever
//     becomes of the bucket.
//   - Every call of a provider is counted once, in the day it ended. A request is
//     counted once too, under the model that answered, or under no provider where
//     no model did.
//
// When things fail:
//
//   - The worker dies: what it counted since the last flush is lost, a second's
//     worth or, with very many totals, what one round of puts takes.
//   - KV is out of reach: counting goes on in memory, Behind says since when, and
//     everything is put once KV is back.
//   - More than maxRows totals in a worker, as by a tenant name for each caller:
//     what has no room is counted under the tenant and feature Others, so that
//     tokens and dollars stay whole.
package usage
