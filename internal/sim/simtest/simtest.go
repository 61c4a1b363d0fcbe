// Package simtest runs a simulated provider for the length of a test.
package simtest

import (
	"sync"
	"testing"

	"github.com/llmbus/llmbus/internal/sim"
	"github.com/stretchr/testify/require"
)

// Start serves on a free port until the test ends.
func Start(tb testing.TB) *sim.Server {
	tb.Helper()
	s, err := sim.New(sim.Config{})
	require.NoError(tb, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(tb.Context()) }) // Close below reports what matters
	tb.Cleanup(func() {
		require.NoError(tb, s.Close())
		running.Wait()
	})
	return s
}
