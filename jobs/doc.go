// Package jobs takes background requests from a work queue, hands them to an
// llm.Completer and stores their answers.
//
// One job:
//
//	llm.jobs.<feature> ─► LLM_JOBS ─► taken ─► done before? ──yes──────────────► ack
//	                         ▲          │no
//	                         │          ▼
//	                         │       Complete ──answer──► LLM_RESULTS ─► reply ─► ack
//	                         │          │error
//	                         │          ▼
//	                         │     worth another try? ──no──► LLM_DEAD ─► reply ─► ack
//	                         │          │yes
//	                         │          ▼
//	                         └── Nak ◄─ llm_jobs (the history so far)
//
// Whether it is worth another try is decided by Policy.after, a function of
// values. Nothing is written on the way of a job that succeeds but its answer.
//
// Invariants:
//   - A job leaves the work queue only after its answer or its dead letter is
//     stored. A worker that dies at any step leaves it there, and after AckWait
//     another worker gets it.
//   - The answer of a job is the only message of its subject: it is stored on the
//     condition that there is none yet. So is a dead letter, unless it replaces
//     that of an earlier replay. A worker that gets a job whose answer or dead
//     letter is there acknowledges it and asks nobody.
//   - A job in hand is told to the server every AckWait/3, so that a long one is
//     not given to another worker.
//   - A worker asks the server for as many jobs as it has free slots, so that no
//     job waits in a client's buffer while its AckWait runs.
//   - A job that is put off keeps no slot. It keeps a place in MaxAckPending,
//     which is large, until its delay is over.
//
// How a job ends without an answer: its error says that no further try can help;
// the feature's backoff list is used up; it is older than its expiry; somebody
// cancelled it; or workers died of it crashLimit times. Tries that asked no
// provider, such as those that met open circuits or a kill switch, and those
// that met a rate limit are not counted: the expiry alone ends these.
//
// When NATS is out of reach a worker goes on with what it has in hand, and stores
// the answer when NATS is back. The server may have given the job to another
// worker meanwhile; the first answer stays and the other is dropped. (If one of
// the two comes to an answer and the other, within the same few milliseconds, to
// a dead letter, both are stored: they are in different streams.)
//
// At the end of a worker the calls under way are broken off and their jobs are
// given back at once, with the attempts so far in their history.
package jobs
