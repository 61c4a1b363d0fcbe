package sim_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/anthropic"
	"github.com/llmbus/llmbus/provider/ollama"
	"github.com/llmbus/llmbus/provider/openai"
	"github.com/stretchr/testify/require"
)

// adapters are the readers that the three protocols are spoken for.
func adapters(t *testing.T, s *sim.Server) map[string]llm.Completer {
	o, err := openai.New(openai.Config{BaseURL: s.URL()})
	require.NoError(t, err)
	a, err := anthropic.New(anthropic.Config{BaseURL: s.URL()})
	require.NoError(t, err)
	l, err := ollama.New(ollama.Config{BaseURL: s.URL()})
	require.NoError(t, err)
	t.Cleanup(func() { o.Close(); a.Close(); l.Close() })
	return map[string]llm.Completer{"openai": o, "anthropic": a, "ollama": l}
}

func question(model string) *llm.Request {
	return &llm.Request{Model: model, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("q")}}}
}

// drain reads a stream to its end.
func drain(ctx context.Context, c llm.Completer, req *llm.Request) (text string, end *llm.Response, err error) {
	for frame, failed := range c.Stream(ctx, req) {
		if frame.Type == llm.FrameDelta {
			text += frame.Text
		}
		end, err = frame.Response, failed
	}
	return text, end, err
}

func TestAdaptersReadEveryAnswer(t *testing.T) {
	s := simtest.Start(t)
	for name, c := range adapters(t, s) {
		t.Run(name, func(t *testing.T) {
			for _, model := range []string{"sim-ok", "sim-slow-first-1ms-t5-g1ms"} {
				whole, err := c.Complete(t.Context(), question(model))
				require.NoError(t, err)
				text, end, err := drain(t.Context(), c, question(model))
				require.NoError(t, err)
				require.Equal(t, whole.Content, text)
				require.Equal(t, whole.Content, end.Content)
				require.Equal(t, llm.FinishStop, end.FinishReason)
				require.Equal(t, *whole.Usage.OutputTokens, *end.Usage.OutputTokens)
			}
			tools := question("sim-tools")
			tools.Tools = []llm.Tool{{Name: "get_weather"}}
			_, end, err := drain(t.Context(), c, tools)
			require.NoError(t, err)
			require.Equal(t, "get_weather", end.ToolCalls[0].Name)
			require.Equal(t, llm.FinishToolCalls, end.FinishReason)

			schema := question("sim-ok")
			schema.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}`)}
			answer, err := c.Complete(t.Context(), schema)
			require.NoError(t, err)
			require.JSONEq(t, `{"a":1}`, answer.Content)
		})
	}
}

func TestAdaptersClassEveryFault(t *testing.T) {
	s := simtest.Start(t)
	limits := provider.Timeouts{FirstToken: 150 * time.Millisecond, Idle: 150 * time.Millisecond, Total: 300 * time.Millisecond}
	for name, c := range adapters(t, s) {
		timed := &provider.Timed{Inner: c, Limit: limits}
		for model, want := range map[string]struct{ whole, stream llm.Outcome }{
			"status-503":    {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"401":           {llm.OutcomeAuth, llm.OutcomeAuth},
			"429-retry-2":   {llm.OutcomeRateLimited, llm.OutcomeRateLimited},
			"unheard-of":    {llm.OutcomeNotFound, llm.OutcomeNotFound},
			"reset":         {llm.OutcomeConnect, llm.OutcomeConnect},
			"eof":           {llm.OutcomeConnect, llm.OutcomeConnect},
			"hang":          {llm.OutcomeTimeout, llm.OutcomeFirstTokenTimeout},
			"slow-first-9":  {llm.OutcomeTimeout, llm.OutcomeFirstTokenTimeout},
			"stall-after-2": {llm.OutcomeTimeout, llm.OutcomeIdleTimeout},
			"cut-after-2":   {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"reset-after-2": {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"end-after-2":   {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"error-after-2": {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"malformed":     {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"wrong-json":    {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"html":          {llm.OutcomeUnavailable, llm.OutcomeUnavailable},
			"empty":         {llm.OutcomeInvalidOutput, llm.OutcomeInvalidOutput},
		} {
			t.Run(name+"/"+model, func(t *testing.T) {
				t.Parallel()
				_, err := timed.Complete(t.Context(), question("sim-"+model))
				require.Equal(t, want.whole, provider.AsFailure(err).Outcome, err)
				_, _, err = drain(t.Context(), timed, question("sim-"+model))
				require.Equal(t, want.stream, provider.AsFailure(err).Outcome, err)
			})
		}
	}
}

// TestAdaptersCloseWhatIsCancelled allows half a second from the cancel to the
// provider's seeing its socket closed.
func TestAdaptersCloseWhatIsCancelled(t *testing.T) {
	s := simtest.Start(t)
	for name, c := range adapters(t, s) {
		for _, model := range []string{"sim-hang", "sim-stall-after-3"} {
			t.Run(name+"/"+model, func(t *testing.T) {
				before := len(s.Stats().Cancels)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					_, _, err := drain(ctx, c, question(model))
					done <- err
				}()
				require.Eventually(t, func() bool { return s.Stats().InFlight == 1 }, soon, often)
				left := time.Now()
				cancel()
				require.Equal(t, llm.OutcomeCancelled, provider.AsFailure(<-done).Outcome)
				require.Eventually(t, func() bool { return len(s.Stats().Cancels) == before+1 }, soon, often)
				require.Less(t, s.Stats().Cancels[before].At.Sub(left), 500*time.Millisecond)
			})
		}
	}
}
