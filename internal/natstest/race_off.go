//go:build !race

package natstest

// Scale is the size of a test: many, but few under the race detector.
func Scale(many, _ int) int { return many }
