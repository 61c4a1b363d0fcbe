// Package kv keeps what workers share: typed JetStream buckets, local mirrors
// of them that are fed by push, the kill switches, and the cache of answers.
//
// # A mirror
//
//	          connection made           snapshot read
//	not fresh ----------------> reading -------------> fresh, re-read every 5 s
//	    ^                          |                     |
//	    +--------------------------+---------------------+
//	          connection lost         connection lost, or three
//	                                  intervals without a re-read
//
// Changes come as plain messages that the bucket republishes, heard by a core
// subscription made before the first snapshot. A snapshot is the list of keys
// from the leader of the bucket and direct gets of their values. It needs no
// consumer, and so works as soon as the server answers at all; a watch of the
// bucket can stay blind for many seconds after a server restart.
//
// Invariants:
//
//   - A key moves forwards in revisions only, whichever of push and snapshot
//     comes first. A snapshot that covers revision n also ends the keys up to n
//     that it does not have; a push up to n that comes later is old news.
//   - What Get shows is a value that the bucket has had. Fresh says whether it
//     is likely to be the present one.
//   - Callbacks come in order, after the mirror shows the change, one at a time.
//   - No two machines' clocks are compared: Entry.Age adds local time to a
//     difference of server times.
//
// When things fail:
//
//   - A push is lost (slow reader, cluster that has not learned of the
//     subscription): the next re-read repairs it, the first one 250 ms after a
//     connection was made.
//   - The connection breaks: not fresh at once; after the reconnect a snapshot is
//     tried immediately and then every 25 ms to 1 s.
//   - JetStream or the bucket's leader is away: pushes cannot come either; not
//     fresh once the last snapshot is three intervals old. Entries stay.
//   - The mirror's server is cut off from the others, and with it the bucket's
//     leader, which goes on to answer: not fresh at the first re-read by which
//     it has not heard the majority for 3 s.
//   - A server comes back with less than it had: believed after five reads in a
//     row, since a new leader may only be catching up. A bucket that was deleted
//     and made again is recognised by its time of creation.
//   - Whoever may publish on llm.kv.> can forge a push, and a re-read does not
//     undo one that took a revision to come: give that permission to nobody.
//
// # Flags
//
// A flag is a key such as feature.support with a value such as "off" that a
// person can put with any KV tool; see Flag. A key that is not set is on, and a
// value that nobody understands is off. Flags.Current costs one atomic load
// while the mirror is fresh, else one direct read that all requests share, and
// gives the last known flags, degraded, if that fails.
package kv
