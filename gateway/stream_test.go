package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// TestACallerThatLeavesCancelsTheCall measures from the caller's side to the
// provider's socket.
func TestACallerThatLeavesCancelsTheCall(t *testing.T) {
	provider := simtest.Start(t)
	srv := natstest.ListenServer(t)
	fleet(t, srv, fmt.Sprintf("providers: {p: {kind: openai, base_url: %q}}\nfeatures: {support: {targets: [{provider: p, model: sim-ok-t6000-g20ms}]}}", provider.URL()))
	r := open(t, srv)
	cancel := func(t *testing.T, name, body string) time.Duration {
		before := len(provider.Stats().Cancels)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		ended := make(chan error, 1)
		text := make(chan struct{})
		go func() {
			resp, err := http.DefaultClient.Do(r.request(t, ctx, http.MethodPost, "/v1/chat/completions", body))
			if err == nil {
				close(text)
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			ended <- err
		}()
		require.Eventually(t, func() bool { return provider.Stats().InFlight == 1 }, patience, tick)
		if name == "stream" {
			<-text
		}
		left := time.Now()
		leave()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Eventually(t, func() bool { return len(provider.Stats().Cancels) > before }, patience, tick)
		require.Eventually(t, func() bool { return provider.Stats().InFlight == 0 }, patience, tick)
		return provider.Stats().Cancels[before].At.Sub(left)
	}
	for name, body := range map[string]string{"whole": hello, "stream": helloStream} {
		t.Run(name, func(t *testing.T) {
			const soon, tries = 500 * time.Millisecond, 5 // a busy machine may be late with one of them
			took := cancel(t, name, body)
			for n := 1; n < tries && took >= soon; n++ {
				took = cancel(t, name, body)
			}
			require.Less(t, took, soon)
		})
	}
}

// endless streams as fast as it is read.
type endless struct{ ended chan error }

func (e endless) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	return nil, llm.ErrInternal
}

func (e endless) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		defer func() { e.ended <- context.Cause(ctx) }()
		for ctx.Err() == nil && yield(llm.Frame{Attempt: 1, Type: llm.FrameDelta, Text: strings.Repeat("x", 16<<10)}, nil) {
		}
		yield(llm.Frame{}, llm.Errorf(llm.CodeCancelled, "%w", context.Cause(ctx)))
	}
}

// TestACallerThatDoesNotRead is cut off, and its call with it.
func TestACallerThatDoesNotRead(t *testing.T) {
	provider := endless{make(chan error, 1)}
	srv := natstest.ListenServer(t)
	work(t, srv, bus.Config{Completer: provider})
	r := open(t, srv, func(c *gateway.Config) { c.WriteTimeout = 100 * time.Millisecond })
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(helloStream), helloStream)
	require.NoError(t, err)
	select {
	case err := <-provider.ended:
		require.ErrorIs(t, err, llm.ErrCancelled)
	case <-time.After(patience):
		require.Fail(t, "the call goes on")
	}
}

// TestWaiting shows that a stream without a first text keeps its status open for
// a while, and then says that somebody is there.
func TestWaiting(t *testing.T) {
	free := make(chan struct{})
	p := fake.New(fake.Step{Until: free, Err: llm.Errorf(llm.CodeUnavailable, "no target could serve")})
	r := script(t, p, func(c *gateway.Config) { c.HoldHeaders, c.PingEvery = 50*time.Millisecond, 20*time.Millisecond })
	resp, err := http.DefaultClient.Do(r.request(t, t.Context(), http.MethodPost, "/v1/chat/completions", helloStream))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, 200, resp.StatusCode)
	lines := bufio.NewReader(resp.Body)
	for range 3 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, ": waiting\n", line)
	}
	close(free)
	rest, err := io.ReadAll(lines)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	events := reply{header: resp.Header, body: string(rest)}.events(t)
	require.Len(t, events, 1)
	require.Equal(t, "unavailable", *faultIn(t, events[0]).Code)
}

// restarted shows a part of an answer and begins another.
type restarted struct{ *fake.Provider }

func (restarted) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		for _, f := range []llm.Frame{
			{Attempt: 1, Type: llm.FrameStart, Provider: "a"}, {Attempt: 1, Type: llm.FrameDelta, Text: "one"},
			{Attempt: 2, Type: llm.FrameStart, Provider: "b"}, {Attempt: 2, Type: llm.FrameDelta, Text: "another"},
			{Attempt: 2, Type: llm.FrameEnd, Response: &llm.Response{Content: "another", ServedBy: llm.ServedByModel}},
		} {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// TestNothingIsSplicedInSilence: the API has no word for "forget what you have".
func TestNothingIsSplicedInSilence(t *testing.T) {
	srv := natstest.ListenServer(t)
	work(t, srv, bus.Config{Completer: restarted{fake.New()}})
	got := open(t, srv).ask(t, helloStream)
	require.Error(t, got.cut)
	require.NotContains(t, got.body, "another")
	events := got.events(t)
	require.Equal(t, "interrupted", *faultIn(t, events[len(events)-1]).Code)
}

// TestAQueuedAnswerIsNoAnswer: a job makes it, and the caller must not take
// nothing for it.
func TestAQueuedAnswerIsNoAnswer(t *testing.T) {
	r := script(t, fake.New(fake.Step{Response: &llm.Response{ServedBy: llm.ServedByFallback, Fallback: llm.FallbackQueued, Job: &llm.Job{ID: "J1", Result: "r"}}}))
	for _, body := range []string{hello, helloStream} {
		got := r.ask(t, body)
		require.Equal(t, []any{503, "queued", "J1", "false"},
			[]any{got.status, *got.fault(t).Code, got.header.Get("X-Llmbus-Job"), got.header.Get("X-Should-Retry")})
	}
}

// TestAnAnswerThatIsAnotherThanWhatWasSent must not look whole.
func TestAnAnswerThatIsAnotherThanWhatWasSent(t *testing.T) {
	r := script(t, fake.New(fake.Step{Pieces: []string{"one answer"}, Response: &llm.Response{Content: "quite another", FinishReason: llm.FinishStop}}))
	got := r.ask(t, helloStream)
	require.Error(t, got.cut)
	require.NotContains(t, got.body, "[DONE]")
	events := got.events(t)
	require.Equal(t, "interrupted", *faultIn(t, events[len(events)-1]).Code)
}

func TestAFallbackSaysSo(t *testing.T) {
	r := script(t, fake.New(fake.Step{Pieces: []string{"later"}, Response: &llm.Response{Content: "later", ServedBy: llm.ServedByKillSwitch, Fallback: llm.FallbackStatic}}))
	got := r.ask(t, hello)
	require.Equal(t, []any{200, "kill_switch", "static"}, []any{got.status, got.header.Get("X-Llmbus-Served-By"), got.header.Get("X-Llmbus-Fallback")})
	require.Contains(t, got.body, `"finish_reason":"stop"`)
	require.Contains(t, r.ask(t, helloStream).body, `"llmbus":{"served_by":"kill_switch","fallback":"static"}`)
}

func TestATimeIsBounded(t *testing.T) {
	r := script(t, fake.New(fake.Hangs()), func(c *gateway.Config) { c.MaxTimeout = time.Hour })
	for _, body := range []string{hello, helloStream} {
		got := r.ask(t, body, "X-Llmbus-Timeout-Ms", "150")
		require.Equal(t, []any{504, "deadline", "false"}, []any{got.status, *got.fault(t).Code, got.header.Get("X-Should-Retry")})
	}
	for _, ms := range []string{"0", "-1", "x", "86400001"} {
		require.Equal(t, 400, r.ask(t, hello, "X-Llmbus-Timeout-Ms", ms).status)
	}
	got := r.ask(t, hello, "X-Llmbus-Class", "hasty")
	require.Equal(t, []any{400, "class must be interactive, background or structured"}, []any{got.status, got.fault(t).Message})
}

// TestShutdown lets a stream end within the grace period and takes no others.
func TestShutdown(t *testing.T) {
	free := make(chan struct{})
	p := fake.New(fake.Step{Until: free, Pieces: []string{"well"}})
	r := script(t, p)
	inFlight := make(chan reply, 1)
	go func() { inFlight <- r.ask(t, helloStream) }()
	require.Eventually(t, func() bool { return p.Running() == 1 }, patience, tick)
	r.stop()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, patience, tick)
	close(free)
	got := <-inFlight
	require.NoError(t, got.cut)
	require.True(t, strings.HasSuffix(got.body, "data: [DONE]\n\n"))
	require.NoError(t, <-r.end)
}

// TestShutdownBreaksOff what takes longer than the grace period, with an error.
func TestShutdownBreaksOff(t *testing.T) {
	p := fake.New(fake.Step{Pieces: []string{"one"}, Hang: true})
	r := script(t, p, func(c *gateway.Config) { c.Grace = 20 * time.Millisecond })
	whole, streamed := make(chan reply, 1), make(chan reply, 1)
	go func() { whole <- r.ask(t, hello) }()
	go func() { streamed <- r.ask(t, helloStream) }()
	require.Eventually(t, func() bool { return p.Running() == 2 }, patience, tick)
	r.stop()
	got := <-whole
	require.Equal(t, []any{502, "interrupted", "true"}, []any{got.status, *got.fault(t).Code, got.header.Get("X-Should-Retry")})
	got = <-streamed
	if got.status == 200 { // its first text was sent
		require.Error(t, got.cut)
		events := got.events(t)
		require.Equal(t, "interrupted", *faultIn(t, events[len(events)-1]).Code)
	} else {
		require.Equal(t, 502, got.status)
	}
	require.NoError(t, <-r.end)
	require.Eventually(t, func() bool { return p.Running() == 0 }, patience, tick)
}
