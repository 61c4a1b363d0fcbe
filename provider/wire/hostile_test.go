package wire_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// rawServer gives each connection, with its request unread, to serve.
func rawServer(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// afterRequest writes head and then piece without end, until the peer goes.
func afterRequest(head, piece string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, err := io.WriteString(conn, head)
		for err == nil {
			_, err = io.WriteString(conn, piece)
		}
	}
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

// TestEndlessAnswersEnd sends what never ends, faster than anybody could want.
func TestEndlessAnswersEnd(t *testing.T) {
	filler := strings.Repeat("x", 32<<10)
	for name, tc := range map[string]struct {
		head, piece string
		want        error
	}{
		"headers":     {"HTTP/1.1 200 OK\r\n", "X-A: " + filler[:1000] + "\r\n", nil},
		"1xx answers": {"", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", nil},
		"comments":    {streamHead, ": " + filler + "\n\n", wire.ErrTooLong},
		"empty lines": {streamHead, strings.Repeat("\n", 32<<10), wire.ErrTooLong},
		"one line":    {streamHead + "data: ", filler, wire.ErrTooLong},
		"one event":   {streamHead, "data: " + filler + "\n", wire.ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			c := wire.New(wire.Config{MaxStream: 8 << 20, MaxLine: 1 << 20})
			defer c.Close()
			resp, err := c.Post(t.Context(), wire.Call{URL: rawServer(t, afterRequest(tc.head, tc.piece)), Accept: wire.AcceptSSE})
			if tc.want == nil {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			defer resp.Close()
			before := allocated()
			_, err = resp.SSE().Next()
			require.ErrorIs(t, err, tc.want)
			require.Less(t, allocated()-before, uint64(64<<20))
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestASlowBodyIsBoundByTheContext drips one byte after another.
func TestASlowBodyIsBoundByTheContext(t *testing.T) {
	url := rawServer(t, func(conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
		for err == nil {
			<-time.After(5 * time.Millisecond)
			_, err = io.WriteString(conn, " ")
		}
	})
	c := wire.New(wire.Config{})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	resp, err := c.Post(ctx, wire.Call{URL: url})
	require.NoError(t, err)
	defer resp.Close()
	_, err = resp.ReadAll()
	require.Equal(t, llm.OutcomeTimeout, provider.AsFailure(err).Outcome)
	require.Less(t, time.Since(began), 2*time.Second)
}

// TestAnAnswerBeforeTheRequestIsReadCounts is what proxies do that refuse a
// large body, or know the answer already.
func TestAnAnswerBeforeTheRequestIsReadCounts(t *testing.T) {
	url := rawServer(t, func(conn net.Conn) {
		head := make([]byte, 16)
		_, _ = io.ReadFull(conn, head)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		_, _ = io.Copy(io.Discard, conn)
	})
	c := wire.New(wire.Config{})
	defer c.Close()
	resp, err := c.Post(t.Context(), wire.Call{URL: url, Body: make([]byte, 4<<20)})
	require.NoError(t, err)
	body, err := resp.ReadAll()
	resp.Close()
	require.NoError(t, err)
	require.Equal(t, "{}", string(body))
}
