//go:build race

package natstest

// Scale is the size of a test: few under the race detector, whose runtime can
// crash in a bubble with very many timers and goroutines (golang/go#78156).
func Scale(_, few int) int { return few }
