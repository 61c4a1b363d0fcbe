// Package http1 makes HTTP/1.1 calls in the goroutine of their caller.
//
// net/http keeps two goroutines for every connection and hands each call over to
// them and back, which costs a worker more than anything that it does itself, and
// a waiting stream the stacks of both. Here the caller writes its request and reads its answer, and a
// connection that no call uses is a socket in a list. All that is difficult in HTTP
// stays with net/http: it writes the head of a request, and reads the head and the
// framing of an answer. What is left is the life of a connection:
//
//	          dial               end of the answer
//	Post ──────────────▶ in use ───────────────────▶ idle ──▶ closed after IdleTimeout
//	  │                   │  ▲                        │
//	  │   context ends,   │  └────────────────────────┘
//	  │   answer is left  ▼      Post, if it is silent
//	  └───────────────▶ closed
//
// Nothing is sent twice. A call whose connection turns out to be dead is made on
// another one only while not a byte of it has been taken.
//
// A kept connection that says anything before it is asked, be it good-bye or
// an answer too many, is closed: an answer that nobody asked for must not become that
// of the next caller.
//
// There is no HTTP/2, no redirect, no proxy, no cookie and no compression.
package http1
