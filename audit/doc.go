// Package audit writes how each request was routed into the stream LLM_AUDIT,
// without anything of what was asked or answered.
//
//	chain ──Audit──► a queue in memory ──Run──► llm.audit.<feature> ──► LLM_AUDIT
//	                      │ full
//	                      ▼
//	                  counted as lost
//
// Invariants:
//
//   - A request never waits for its record: Audit takes it or counts it as lost.
//   - What was taken is published until the stream has it, under an id of its own,
//     so that a record which is published again is stored once.
//   - Every loss is counted and logged.
//
// When things fail:
//
//   - JetStream is out of reach: up to maxQueued records wait, and later ones are
//     lost and counted.
//   - The worker dies: what waits is lost, and nobody can count it. One that ends in
//     order publishes what waits, within lastPatience.
//
// The stream is made when the first record comes, so that a fleet that audits
// nothing has none. It takes no deletion of single records and no purge.
package audit
