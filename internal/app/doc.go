// Package app makes one worker process: it reads the environment once, builds
// every part, runs them together and ends them in order.
//
//	environment ─► configuration ─► embedded server? ─► connection ─► buckets
//	                                                                     │
//	     bus.Worker ◄─ once ◄─ chain.Router ◄─ policy ◄─ flags, breakers, events ┘
//
// Background jobs enter the same router from their work queue, in jobs.Worker.
//
// Each part has a file and a function newX; Run waits for all that it started.
// If one part fails, all end, and its error is what Run returns.
//
// At shutdown the worker first leaves the queue group and lets what is in
// flight end, within the grace period. Then breakers and events, which those
// requests still used, end; the connection is drained and waited for; and last
// comes the embedded server, if there is one.
package app
