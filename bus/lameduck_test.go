package bus_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// What was under way when the server said that it leaves ends over the next
// connection, and what comes meanwhile is told that nobody is there.
func TestALameDuckIsLeftInTime(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		lame, again := make(chan struct{}, 1), make(chan struct{}, 1)
		gate := make(chan struct{})
		nc := natstest.Connect(t, srv, nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))
		w, _ := startWorker(t, nc, model{fake.New(fake.Step{Until: gate, Pieces: []string{"a"}}, fake.Answer("b"))},
			func(c *bus.Config) { c.LameDuck = lame })
		r := &rig{srv: srv, worker: w, caller: natstest.Connect(t, srv)}
		var first *nats.Msg
		var asking sync.WaitGroup
		asking.Go(func() { first = r.ask(t, msg(`{"prompt":"hi"}`)) })
		synctest.Wait()

		lame <- struct{}{}
		<-again
		close(gate)
		asking.Wait()
		resp, err := llm.DecodeReply(first.Data)
		require.NoError(t, err)
		require.Equal(t, "a", resp.Content)
		synctest.Wait()
		require.Equal(t, bus.Joined, w.State())
		resp, err = llm.DecodeReply(r.ask(t, msg(`{"prompt":"hi"}`)).Data)
		require.NoError(t, err)
		require.Equal(t, "b", resp.Content)
	})
}

func TestAFullWorkerStaysAwayOnItsNextServer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		lame, again := make(chan struct{}, 1), make(chan struct{}, 1)
		gate := make(chan struct{})
		nc := natstest.Connect(t, srv, nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))
		w, _ := startWorker(t, nc, model{fake.New(fake.Step{Until: gate, Pieces: []string{"a"}})},
			slotsOf(1), func(c *bus.Config) { c.LameDuck = lame })
		r := &rig{srv: srv, worker: w, caller: natstest.Connect(t, srv)}
		r.occupy(t, 1)
		<-time.After(1100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, bus.Away, w.State())
		lame <- struct{}{}
		<-again
		synctest.Wait()
		require.Equal(t, bus.Away, w.State())
		close(gate)
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, bus.Joined, w.State())
	})
}
