package app

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// TestEventsKeepTheirOrder whatever makes them go: time, their number, or an
// event that does not wait.
func TestEventsKeepTheirOrder(t *testing.T) {
	srv := natstest.ListenServer(t)
	nc := srv.Dial()
	sub, err := nc.SubscribeSync(subjects.Events)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	e := newEvents(srv.Dial(), "w")

	next := func() *nats.Msg {
		msg, err := sub.NextMsg(5 * time.Second)
		require.NoError(t, err)
		return msg
	}
	number := 0
	observe := func(n int) {
		for range n {
			e.Observe(chain.Event{Name: chain.EventRequestStarted, RequestID: fmt.Sprint(number)})
			number++
		}
	}
	observe(3)
	observe(5 * manyEvents)
	e.flips([]kv.Flip{{New: kv.Flag{Key: "all"}}})
	for n := range number {
		var got chain.Event
		msg := next()
		require.NoError(t, json.Unmarshal(msg.Data, &got), string(msg.Data))
		require.Equal(t, fmt.Sprint(n), got.RequestID)
		require.Equal(t, subjects.Event(chain.EventRequestStarted), msg.Subject)
	}
	require.Equal(t, subjects.Event(eventFlipped), next().Subject)

	observe(1)
	require.Contains(t, string(next().Data), `"worker":"w"`)
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Empty(t, e.waiting.names)
}

// TestEventsAreBoundedWhileNothingIsTaken holds up the sending.
func TestEventsAreBoundedWhileNothingIsTaken(t *testing.T) {
	srv := natstest.ListenServer(t)
	e := newEvents(srv.Dial(), "w")
	e.sending.Lock()
	for range mostEvents + 10 {
		e.Observe(chain.Event{Name: chain.EventRequestStarted})
	}
	require.Len(t, e.waiting.names, mostEvents)
	e.sending.Unlock()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.waiting.names) == 0
	}, 5*time.Second, time.Millisecond)
}
