package gateway_test

import (
	"bufio"
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/provider/fake"
)

// TestCallersThatLeaveTakeEverythingAlong has hundreds of callers leave at once,
// at every point of a request.
func TestCallersThatLeaveTakeEverythingAlong(t *testing.T) {
	p := fake.New(fake.Step{Wait: time.Millisecond, Pieces: []string{"one", "two"}, Gap: time.Millisecond, Hang: true})
	r := script(t, p)
	for _, body := range []string{hello, helloStream} { // a client keeps one inbox from its first request on
		require.NotZero(t, r.ask(t, body, "X-Llmbus-Timeout-Ms", "50").status)
	}
	subscriptions := r.srv.NumSubscriptions()
	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	var callers sync.WaitGroup
	for i := range 300 {
		callers.Go(func() {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			body := hello
			if i%3 > 0 {
				body = helloStream
			}
			if i%3 != 1 { // at any time, perhaps before it was asked
				time.AfterFunc(time.Duration(i)*100*time.Microsecond, leave)
			}
			resp, err := client.Do(r.request(t, ctx, http.MethodPost, "/v1/chat/completions", body))
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(resp.Body).ReadString('\n')
			_ = resp.Body.Close()
		})
	}
	callers.Wait()
	require.Eventually(t, func() bool { return p.Running() == 0 }, patience, tick)
	transport.CloseIdleConnections()
	require.Eventually(t, func() bool { return r.srv.NumSubscriptions() <= subscriptions }, patience, tick)
	require.Eventually(t, func() bool { return !strings.Contains(stacks(), "gateway.(*Server).chat") }, patience, tick)
	require.Positive(t, p.Count())
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 4<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
