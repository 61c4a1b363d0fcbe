package chain_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/anthropic"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/provider/gemini"
	"github.com/llmbus/llmbus/provider/ollama"
	"github.com/llmbus/llmbus/provider/openai"
)

// adapter is what an operator would set up for the server of a case.
func adapter(t *testing.T, v *vectors.Vector, url string) llm.Completer {
	t.Helper()
	const key, version = "test-key-1", "2024-10-21"
	switch {
	case v.Provider == "anthropic":
		p, err := anthropic.New(anthropic.Config{BaseURL: url, APIKey: key, ConnectTimeout: v.Timeouts.Connect(), Now: v.Now.Now})
		return closing(t, p, p.Close, err)
	case v.Provider == "ollama" && v.API != "openai":
		p, err := ollama.New(ollama.Config{BaseURL: url, APIKey: key, ConnectTimeout: v.Timeouts.Connect(), Now: v.Now.Now})
		return closing(t, p, p.Close, err)
	case v.Provider == "gemini" && v.API != "openai":
		p, err := gemini.New(gemini.Config{BaseURL: url, APIKey: key, ConnectTimeout: v.Timeouts.Connect(), Now: v.Now.Now})
		return closing(t, p, p.Close, err)
	}
	cfg := openai.Config{BaseURL: url, APIKey: key, ConnectTimeout: v.Timeouts.Connect(), Now: v.Now.Now}
	switch v.Provider {
	case "azure":
		cfg.Azure = &openai.Azure{APIVersion: version}
	case "gemini":
		cfg.BaseURL, cfg.Family = url+"/v1beta/openai", openai.FamilyCompatible
	case "openai-compatible", "ollama":
		cfg.Family = openai.FamilyCompatible
	}
	if v.Variant == "mistral" {
		cfg.Family = openai.FamilyMistral
	}
	if v.API == "responses" {
		cfg.API = openai.APIResponses
	}
	p, err := openai.New(cfg)
	return closing(t, p, p.Close, err)
}

func closing(t *testing.T, c llm.Completer, free func(), err error) llm.Completer {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(free)
	return c
}

// watched keeps the failure that an adapter reported.
type watched struct {
	llm.Completer
	failure *provider.Failure
}

func (w *watched) note(err error) {
	if err != nil {
		w.failure = provider.AsFailure(err)
	}
}

func (w *watched) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := w.Completer.Complete(ctx, req)
	w.note(err)
	return resp, err
}

func (w *watched) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		for f, err := range w.Completer.Stream(ctx, req) {
			if w.note(err); !yield(f, err) {
				return
			}
		}
	}
}

// Every transcript, over a real socket, through adapter and chain: the case's
// provider comes first, a healthy one with larger limits second.
func TestVectorsThroughTheChain(t *testing.T) {
	cases, err := vectors.Load(vectors.Dir("testdata/vectors"), func(*vectors.Vector) bool { return true })
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, v := range cases {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			playVector(t, v)
		})
	}
}

func playVector(t *testing.T, v *vectors.Vector) {
	server := vectors.Serve(t, &v.Upstream)
	first := &watched{Completer: adapter(t, v, server.URL)}
	second := fake.New(fake.Answer("second"))
	limits := v.Timeouts.Limits()
	group, err := breaker.New(breaker.Config{})
	require.NoError(t, err)
	opens := group.Breaker("first", breaker.Settings{Threshold: 1}) // one failure shows whether it counts
	rig := newRig(t, func(f *chain.Feature) {
		f.Timeout = 20 * time.Second
		a := &f.Targets[0]
		a.Completer, a.Timeout, a.Limits = first, limits.Total, limits
		a.Breaker = opens
		if v.Target.Model != "" {
			a.Model = v.Target.Model
		}
		a.Can.ContextWindow, a.Can.MaxOutputTokens = 1<<18, 1<<18
		f.Targets[1].Can.ContextWindow, f.Targets[1].Can.MaxOutputTokens = 1<<20, 1<<20
	}, fake.New(), second)

	req, err := v.LLM()
	require.NoError(t, err)
	req.ID, req.Feature = "r1", "f"
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if after := v.Request.CancelAfterMS; after > 0 {
		timer := time.AfterFunc(time.Duration(after)*time.Millisecond, func() { cancel(llm.ErrCancelled) })
		defer timer.Stop()
	}
	do := complete
	if v.Stream {
		do = stream
	}
	got := do(ctx, rig, req)
	if v.Upstream.Fault != "refuse" {
		require.Len(t, server.Requests(), 1, "calls on the wire")
		if v.Upstream.Expect != nil {
			require.NoError(t, v.Upstream.Expect.Check(server.Requests()[0]))
		}
	}
	checkVector(t, v, got, first.failure, second.Count())
	state := group.Snapshot()[0].State
	require.Equal(t, v.Expect.TripsBreaker, state == breaker.Open, "the breaker is %s", state)
}

func checkVector(t *testing.T, v *vectors.Vector, got outcome, failure *provider.Failure, second int) {
	t.Helper()
	e := &v.Expect
	attempts := got.attempts()
	require.NotEmpty(t, attempts)
	require.Equal(t, e.Class, attempts[0].Class, "%s: %v", v.Why, failure)

	shown := e.Content != nil && e.Class != llm.OutcomeOK
	if failure == nil && e.Class == llm.OutcomeInvalidOutput { // judged by the chain
		failure = provider.Fail(e.Class, nil)
		if e.FinishReason == llm.FinishLength {
			failure.Detail = provider.DetailLengthCut
		}
	}
	want := chain.Verdict{RetrySame: e.RetrySame, FailOver: e.FailOver, PolicyDefault: e.PolicyDefault, Trips: e.TripsBreaker}
	if e.Class != llm.OutcomeOK {
		judged := *failure
		judged.Outcome = e.Class
		require.Equal(t, want, chain.VerdictOf(&judged, shown), v.Why)
	}
	moves := e.FailOver == "yes" || e.FailOver == "policy" && e.PolicyDefault != "no"
	require.Equal(t, moves, second == 1, "the second target was asked %d times: %s", second, v.Why)

	switch {
	case e.Class == llm.OutcomeOK:
		v.CheckAdapter(t, vectors.Result{Response: got.known()})
	case moves && v.Request.JSONSchema != nil: // "second" is not what was asked for
		require.Equal(t, llm.CodeInvalidOutput, got.err.Code)
	case moves:
		require.Nil(t, got.err)
		require.Equal(t, "second", got.resp.Content)
	default:
		require.NotNil(t, got.err)
		require.Nil(t, got.resp)
	}
	if shown {
		require.Equal(t, *e.Content, got.text())
	}
	if e.Usage != nil && e.Class != llm.OutcomeOK && failure.Usage != nil {
		require.Equal(t, failure.Usage, attempts[0].Usage, "a failed attempt is booked with its tokens")
	}
}

func (o outcome) attempts() []llm.Attempt {
	if o.err != nil {
		return o.err.Attempts
	}
	return o.resp.Attempts
}

// known is the response with only what the provider said of its usage.
func (o outcome) known() *llm.Response {
	resp := *o.resp
	if resp.Usage != nil && resp.Usage.Estimated {
		resp.Usage = nil
	}
	return &resp
}
