package kv_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// follow runs a Run function until t ends and requires that it ends well.
func follow(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}
