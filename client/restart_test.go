package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// TestARestartOfTheServerLeavesNoRequestOpen restarts NATS while callers ask,
// whole and streamed: each request ends in an answer or a named error, and the
// next ones are answered again.
func TestARestartOfTheServerLeavesNoRequestOpen(t *testing.T) {
	srv := natstest.ListenServer(t)
	w, err := bus.New(bus.Config{Conn: srv.Dial(), Completer: model{fake.New(fake.Step{Wait: time.Millisecond, Pieces: []string{"a", "b"}})}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()

	var answered atomic.Int64
	quit := make(chan struct{})
	odd := make(chan error, 8)
	var callers sync.WaitGroup
	for i := range 8 {
		c, err := client.New(srv.Dial(), client.WithSilence(time.Second))
		require.NoError(t, err)
		callers.Go(func() { call(c, i%2 == 0, quit, &answered, odd) })
	}
	for range 2 {
		seen := answered.Load()
		require.Eventually(t, func() bool { return answered.Load() > seen+100 }, 20*time.Second, time.Millisecond)
		srv.Restart()
	}
	seen := answered.Load()
	require.Eventually(t, func() bool { return answered.Load() > seen+100 }, 20*time.Second, time.Millisecond)
	close(quit)
	callers.Wait()
	require.Empty(t, odd)
	stop()
	require.NoError(t, <-done)
}

// call asks until quit is closed.
func call(c *client.Client, streamed bool, quit <-chan struct{}, answered *atomic.Int64, odd chan<- error) {
	for {
		select {
		case <-quit:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		var err error
		if streamed {
			_, err = collect(c.Stream(ctx, ask()))
		} else {
			_, err = c.Complete(ctx, ask())
		}
		cancel()
		_, named := errors.AsType[*llm.Error](err)
		switch {
		case err == nil:
			answered.Add(1)
		case !named && !errors.Is(err, context.DeadlineExceeded):
			odd <- err
			return
		}
	}
}

// TestARestartOfTheServerSplicesNoStream loses what JetStream has kept in the
// middle of an answer: the reader gets the whole of it, or is told.
func TestARestartOfTheServerSplicesNoStream(t *testing.T) {
	srv := natstest.ListenServer(t)
	config := bus.Config{Conn: srv.Dial(), Completer: model{fake.New(fake.Step{Pieces: alphabet(), Gap: 20 * time.Millisecond})}}
	keeps(t)(&config)
	w, err := bus.New(config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	c, err := client.New(srv.Dial(), client.WithSilence(time.Second))
	require.NoError(t, err)

	var shown strings.Builder
	for f, e := range c.Stream(t.Context(), resumable()) {
		if shown.WriteString(f.Text); shown.Len() == 5 {
			srv.Restart()
		}
		err = e
	}
	whole := strings.Join(alphabet(), "")
	if err != nil {
		require.ErrorIs(t, err, llm.ErrInterrupted)
		require.True(t, strings.HasPrefix(whole, shown.String()), shown.String())
	} else {
		require.Equal(t, whole, shown.String())
	}
	stop()
	require.NoError(t, <-done)
}
