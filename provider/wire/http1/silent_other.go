//go:build !unix

package http1

// wouldBlock does not know. A call on a connection that the peer has closed then
// fails, and the chain decides what follows.
func wouldBlock(uintptr) bool { return true }
