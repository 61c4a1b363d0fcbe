// Package fake is the scripted provider that the tests of every layer share.
//
// Each call takes the next Step of the script; the last Step repeats. It obeys
// its context in every wait, keeps a record of each call, may be used by many
// goroutines at once, starts no goroutine, and waits on timers and channels
// only, so that it runs in a synctest bubble.
package fake
