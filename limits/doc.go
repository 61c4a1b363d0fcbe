// Package limits keeps tenants within what they may use, over the whole fleet:
// requests, tokens and dollars in windows of time, and requests at once.
//
// Each limit of each tenant has one total that all workers share, and a pool at
// every worker that needs it:
//
//	         lease: a 64th of what is left, at least what is needed
//	┌───────┐ ───────────────────────────────────────────────────▶ ┌──────┐  take  ┌───────┐
//	│ total │                                                      │ pool │ ─────▶ │ grant │
//	└───────┘ ◀─────────────────────────────────────────────────── └──────┘ ◀───── └───────┘
//	           give back: what was not touched for a second,         put, at the end:
//	           all that is unused when somebody is short             what was not used
//
// The total of a window is a JetStream counter, one subject for each window; that
// of requests at once is a record that names the workers and what they hold,
// written by compare-and-swap. While a pool has something, a request asks nobody.
//
// Before a limit counts as reached, everybody who holds some of it unused has
// been asked to give it back and has said that it has none. From then on a
// worker refuses by itself until it hears that the total has fallen, but for a
// second at most.
//
// # Invariants
//
//   - The sum of all leases of a window never passes the limit: a counter is
//     raised first, and what was raised too far is taken back and not used. What is
//     reserved too low and used nevertheless is booked at the end, beyond the
//     limit if need be.
//   - A request that is refused has used up nothing, of any limit.
//   - Whoever waits for the source waits without a lock; one goroutine for each
//     pool talks to it, for all who wait.
//   - A window belongs to the server's time, as read from the server and carried
//     on by the local monotonic clock. No two workers' clocks are compared. A
//     worker whose reading is late by some milliseconds counts a request in the
//     window before; both windows stay within their limit.
//   - Minutes and hours begin at another instant for each tenant, so that not all
//     leases of a fleet end at once. Days are those of UTC.
//   - An answer that nobody got, to a write that may have happened, is taken for
//     the one that allows less.
//
// # When things fail
//
//   - A worker dies: its slots are free once it has been silent for 5 s and
//     somebody needs them. Others say every second that they live; time in which a
//     worker itself was cut off counts against nobody. What the dead one had leased
//     of a window counts as used until the window is over: at most a 64th of what
//     was left.
//   - JetStream is out of reach for 2 s, or the connection is lost: each worker
//     hands out what it has leased, and beyond it an even share of what nobody had
//     leased when it last heard: (limit - total) / workers, rounded up. In the
//     window in which that begins the fleet may admit less than twice the limit, in
//     the later ones less than one request for each worker more than the limit.
//     Grants say Degraded. When JetStream is back, all book what they admitted, and
//     go on alone for two seconds more, so that the first that is back does not
//     lease what others have used.
//   - The connection is lost and the others cannot be heard: they still count as
//     workers, and keep their slots.
//   - A worker is taken for dead and lives: its requests go on beyond the limit;
//     its next write says again what it holds.
//   - A stream of counters is deleted: the limits of its windows begin anew.
//   - Run has not begun, or has ended: what is leased is handed out; after the
//     end, as without JetStream.
package limits
