package providertest

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Adapter is what the suite must know of an adapter.
type Adapter struct {
	// New makes the adapter for a server at url, with Key as its key. The suite
	// does not reuse it.
	New func(t testing.TB, url string) llm.Completer

	Answer string   // body of a plain answer whose text is Text
	Stream []string // writes of a streamed answer whose text is Text; at least two of them carry a part of it
	Media  string   // content type of a stream
	Text   string

	// Error is an error body whose message holds the text it is given.
	Error func(message string) string
}

// Key is what New gives the adapter as its key, and no error may show.
const Key = "sk-canary-key-0123456789abcdef"

const prompt = "canary prompt: the blue heron flies at noon"

// Run holds the adapter to every promise.
func Run(t *testing.T, a Adapter) {
	t.Run("Complete answers with one call", a.completes)
	t.Run("Stream ends with the whole answer", a.streams)
	t.Run("pieces that are at hand share a frame", a.merges)
	t.Run("no piece waits for one that is not there", a.neverWaits)
	t.Run("a failure is a Failure and tells no secrets", a.keepsSecrets)
	t.Run("a cut stream never succeeds", a.noticesCuts)
	t.Run("a refused connection is connect", a.noticesRefusal)
	t.Run("the end of the context frees the socket", a.obeysContext)
	t.Run("leaving the loop frees socket and goroutines", a.obeysBreak)
	t.Run("requests are not modified and may run at once", a.runsAtOnce)
	t.Run("connections are used again", a.reusesConnections)
}

func ask() *llm.Request {
	return &llm.Request{Model: "test-1", MaxTokens: 100, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(prompt)}}}
}

func (a *Adapter) plain() *vectors.Upstream {
	return &vectors.Upstream{Status: 200, Headers: map[string]string{"Content-Type": "application/json"}, Body: a.Answer}
}

// streamed plays the first n writes, or all of them if n is negative.
func (a *Adapter) streamed(n int, fault string) *vectors.Upstream {
	u := &vectors.Upstream{Status: 200, Headers: map[string]string{"Content-Type": a.Media}, Chunks: []vectors.Chunk{}, Fault: fault}
	for i, data := range a.Stream {
		if n >= 0 && i >= n {
			break
		}
		u.Chunks = append(u.Chunks, vectors.Chunk{Data: data})
	}
	return u
}

func (a *Adapter) start(t *testing.T, u *vectors.Upstream) (llm.Completer, *vectors.Server) {
	t.Helper()
	server := vectors.Serve(t, u)
	return a.New(t, server.URL), server
}

func (a *Adapter) completes(t *testing.T) {
	c, server := a.start(t, a.plain())
	resp, err := c.Complete(t.Context(), ask())
	require.NoError(t, err)
	require.Equal(t, a.Text, resp.Content)
	require.NotEmpty(t, resp.FinishReason)
	require.Empty(t, resp.Attempts)
	require.Zero(t, resp.Timing)
	require.Len(t, server.Requests(), 1)
}

func (a *Adapter) streams(t *testing.T) {
	c, server := a.start(t, a.streamed(-1, ""))
	got := play(t.Context(), c, ask())
	require.NoError(t, got.err)
	require.NotNil(t, got.end)
	require.Equal(t, a.Text, got.text)
	require.Equal(t, a.Text, got.end.Content)
	require.Positive(t, got.deltas, "the answer comes in pieces, as many as were not at hand together")
	require.Len(t, server.Requests(), 1)
}

func (a *Adapter) keepsSecrets(t *testing.T) {
	message := fmt.Sprintf("no luck with %s and %s", Key, prompt)
	for _, status := range []int{200, 400, 401, 403, 404, 418, 429, 500, 529} {
		u := &vectors.Upstream{Status: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: a.Error(message)}
		c, server := a.start(t, u)
		_, err := c.Complete(t.Context(), ask())
		requireQuiet(t, err)
		requireQuiet(t, play(t.Context(), c, ask()).err)
		require.Len(t, server.Requests(), 2, "one call each")
	}
	for _, garbage := range []string{"", message, "<html>" + message, "{" + message, `{"a":"` + message + `"}`, "[]", "data: " + message + "\n\n"} {
		c, _ := a.start(t, &vectors.Upstream{Status: 200, Body: garbage})
		_, err := c.Complete(t.Context(), ask())
		requireQuiet(t, err)
		requireQuiet(t, play(t.Context(), c, ask()).err)
	}
}

// requireQuiet wants a Failure in our own words.
func requireQuiet(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.ErrorAs(t, err, new(*provider.Failure))
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "err", err, "failure", provider.AsFailure(err))
	for _, text := range []string{err.Error(), fmt.Sprintf("%v %+v %#v", err, err, provider.AsFailure(err)), logged.String()} {
		require.NotContains(t, text, "canary")
		require.NotContains(t, text, "heron")
	}
}

func (a *Adapter) noticesCuts(t *testing.T) {
	for _, fault := range []string{"", "truncate", "reset"} {
		c, _ := a.start(t, a.streamed(2, fault))
		got := play(t.Context(), c, ask())
		require.Nil(t, got.end, "fault %q", fault)
		require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(got.err).Outcome)
		requireQuiet(t, got.err)
	}
	u := a.plain()
	u.Body, u.Fault = a.Answer[:len(a.Answer)/2], "truncate"
	c, _ := a.start(t, u)
	_, err := c.Complete(t.Context(), ask())
	require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(err).Outcome)
	requireQuiet(t, err)
}

func (a *Adapter) noticesRefusal(t *testing.T) {
	c, _ := a.start(t, &vectors.Upstream{Fault: "refuse"})
	_, err := c.Complete(t.Context(), ask())
	require.Equal(t, llm.OutcomeConnect, provider.AsFailure(err).Outcome)
	requireQuiet(t, err)
	got := play(t.Context(), c, ask())
	require.Equal(t, llm.OutcomeConnect, provider.AsFailure(got.err).Outcome)
}

func (a *Adapter) obeysContext(t *testing.T) {
	for name, u := range map[string]*vectors.Upstream{
		"before the answer": {Fault: "stall"}, "within a stream": a.streamed(2, "stall"),
	} {
		t.Run(name, func(t *testing.T) {
			c, server := a.start(t, u)
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan played)
			go func() { left <- play(ctx, c, ask()) }()
			eventually(t, func() bool { return len(server.Requests()) == 1 })
			cancel()
			got := <-left
			require.Equal(t, llm.OutcomeCancelled, provider.AsFailure(got.err).Outcome)
			eventually(t, func() bool { return server.Open() == 0 })
		})
	}
	c, server := a.start(t, &vectors.Upstream{Fault: "stall"})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, provider.Fail(llm.OutcomeTimeout, nil))
	defer cancel()
	_, err := c.Complete(ctx, ask())
	require.Equal(t, llm.OutcomeTimeout, provider.AsFailure(err).Outcome, "the cause of the context is the reason")
	eventually(t, func() bool { return server.Open() == 0 })
}

func (a *Adapter) obeysBreak(t *testing.T) {
	c, server := a.start(t, a.streamed(len(a.Stream)-1, "stall"))
	allowed := runtime.NumGoroutine() + 1 // eventually has one of its own
	const calls = 20
	for range calls {
		for frame, err := range c.Stream(t.Context(), ask()) {
			require.NoError(t, err)
			if frame.Visible() {
				break
			}
		}
	}
	eventually(t, func() bool { return server.Open() == 0 && runtime.NumGoroutine() <= allowed })
	require.Len(t, server.Requests(), calls)
}

func (a *Adapter) runsAtOnce(t *testing.T) {
	c, server := a.start(t, a.streamed(-1, ""))
	req := ask()
	results := make(chan played)
	const calls = 8
	for range calls {
		go func() { results <- play(t.Context(), c, req) }()
	}
	for range calls {
		got := <-results
		require.NoError(t, got.err)
		require.Equal(t, a.Text, got.end.Content)
	}
	require.Equal(t, ask(), req)
	require.Len(t, server.Requests(), calls)
}

func (a *Adapter) reusesConnections(t *testing.T) {
	for _, u := range []*vectors.Upstream{a.plain(), a.streamed(-1, "")} {
		c, server := a.start(t, u)
		for range 3 {
			if u.Chunks == nil {
				_, err := c.Complete(t.Context(), ask())
				require.NoError(t, err)
			} else {
				require.NoError(t, play(t.Context(), c, ask()).err)
			}
		}
		require.Equal(t, 1, server.Accepted())
	}
}

// eventually polls what a peer does in its own time.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 500*time.Millisecond, time.Millisecond)
}

// played is what came of a stream.
type played struct {
	text   string
	deltas int
	end    *llm.Response
	err    error
}

func play(ctx context.Context, c llm.Completer, req *llm.Request) played {
	var p played
	for frame, err := range c.Stream(ctx, req) {
		switch {
		case err != nil:
			p.err = err
		case frame.Type == llm.FrameDelta:
			p.text += frame.Text
			p.deltas++
		case frame.Type == llm.FrameEnd:
			p.end = frame.Response
		}
	}
	return p
}
