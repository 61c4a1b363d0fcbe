package e2e

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// deaf asks for a stream over a bare socket that it never reads again.
func deaf(t *testing.T, addr, id string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4<<10))
	payload := `{"prompt":"flood","stream":true}`
	header := fmt.Sprintf("NATS/1.0\r\n%s: %s\r\n\r\n", subjects.HeaderRequestID, id)
	_, err = fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB %s 1\r\nHPUB %s %d %d\r\n%s%s\r\n",
		subjects.Stream("", id), subjects.Complete("f"), len(header), len(header)+len(payload), header, payload)
	require.NoError(t, err)
	return c
}

// A caller that does not read its stream fills the server's buffer for it and
// nothing else: the server cuts it off, the worker notices and stops its model,
// and nobody waits for it. The server must not slow down a worker for its sake
// (no_fast_producer_stall): what others wait for comes over the same connection.
func TestLoadADeafReaderHarmsNobody(t *testing.T) {
	const mb, heldByServer = 1 << 20, 8
	srv := natstest.ListenServer(t, func(o *server.Options) {
		o.MaxPending, o.WriteDeadline, o.NoFastProducerStall = heldByServer*mb, 30*time.Second, true
	})
	flood := make([]string, 20_000)
	for i := range flood {
		flood[i] = strings.Repeat("x", 8<<10) // 160 MB in all
	}
	model := fake.Func(func(_ int, req *llm.Request) fake.Step {
		if req.Messages[0].Content[0].Text == "flood" {
			return fake.Step{Pieces: flood, Gap: 20 * time.Microsecond, Hang: true}
		}
		return fake.Answer("served")
	})
	f := startFleet(t, 1, plan{dial: func() *nats.Conn { return srv.Dial() }, providers: []*fake.Provider{model}, slots: 64,
		bus: func(c *bus.Config) { c.PingEvery = 200 * time.Millisecond }})
	defer f.halt()
	before := heap()
	deaf(t, srv.Addr().String(), "deaf")
	until(t, "the flood begins", func() bool { return model.Running() == 1 })

	var worst time.Duration
	var most uint64
	for n := 0; n < 200 || model.Running() > 0; n++ {
		began := time.Now()
		got, err := ask(t.Context(), f.caller, hello)
		require.NoError(t, err)
		require.Equal(t, "served", got.Content)
		worst = max(worst, time.Since(began))
		if n%50 == 0 {
			most = max(most, heap())
		}
	}
	call := model.Calls()[0]
	require.ErrorIs(t, call.Cause, llm.ErrCancelled, "the model was stopped")
	require.Less(t, worst, 3*time.Second)
	require.Less(t, most-min(before, most), uint64(10*heldByServer*mb), "memory of server and worker together")
	t.Logf("the slowest of the others took %s; %d MB more at most", worst, (most-min(before, most))/mb)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
