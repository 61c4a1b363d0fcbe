package e2e

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/anthropic"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/provider/ollama"
	"github.com/llmbus/llmbus/provider/openai"
)

// wireFault is a fault of real sockets, read by real adapters. Its times are
// those of a bad day, scaled down. Where a stream breaks in its own framing, every
// protocol is tried.
type wireFault struct {
	name     string
	a, b     string   // what becomes of calls to each; empty answers
	on       []string // the protocols of a; nil is one of the three, in turn
	once     bool     // a fails one call only
	attempts int      // of each target; 0 is 1
	class    llm.Class
	silent   bool          // a says nothing at first: the first-token limit of a stream is short
	stalled  bool          // a falls silent: the idle limit of a stream is short
	timeout  time.Duration // the caller's; 0 is 10 s
	tune     func(*chain.Feature)

	request, stream want
}

// shortLimit is that of one call, or of its first token or idle gap, where the
// fault is silence. All other limits are ample.
const shortLimit = 300 * time.Millisecond

func restart(f *chain.Feature) { f.OnInterrupt = chain.InterruptRestart }

// wireFaults are the scenarios: what happens to a, and how it ends.
func wireFaults() []wireFault {
	overToB := func(class string, after time.Duration) want { return want{calls: "a:" + class + " b:ok", after: after} }
	brokenOff := func(class string, words int) want {
		return want{calls: "a:" + class, code: llm.CodeInterrupted, words: words}
	}
	return []wireFault{
		{name: "429 with Retry-After once, a person waits", a: "429-retry-2", once: true, attempts: 2,
			request: overToB("rate_limited", 0), stream: overToB("rate_limited", 0)},
		{name: "429 with Retry-After once, nobody waits", a: "429-retry-200ms", once: true, attempts: 2, class: llm.ClassBackground,
			request: want{calls: "a:rate_limited a:ok", after: 200 * time.Millisecond},
			stream:  want{calls: "a:rate_limited a:ok", after: 200 * time.Millisecond}},
		{name: "429 for ever", a: "429-retry-2", attempts: 2,
			request: overToB("rate_limited", 0), stream: overToB("rate_limited", 0)},
		{name: "429 for ever from all", a: "429-retry-2", b: "429-retry-1", attempts: 2,
			request: want{calls: "a:rate_limited b:rate_limited", code: llm.CodeRateLimited, again: true},
			stream:  want{calls: "a:rate_limited b:rate_limited", code: llm.CodeRateLimited, again: true}},
		{name: "500 once", a: "500", once: true, attempts: 2,
			request: want{calls: "a:unavailable a:ok"}, stream: want{calls: "a:unavailable a:ok"}},
		{name: "503 for ever", a: "503", attempts: 2,
			request: want{calls: "a:unavailable a:unavailable b:ok"}, stream: want{calls: "a:unavailable a:unavailable b:ok"}},
		{name: "503 for ever from all", a: "503", b: "503", attempts: 2,
			request: want{calls: "a:unavailable a:unavailable b:unavailable b:unavailable", code: llm.CodeUnavailable},
			stream:  want{calls: "a:unavailable a:unavailable b:unavailable b:unavailable", code: llm.CodeUnavailable}},
		{name: "reset before headers", a: "reset",
			request: overToB("connect", 0), stream: overToB("connect", 0)},
		{name: "reset before headers once", a: "reset", once: true, attempts: 2,
			request: want{calls: "a:connect a:ok"}, stream: want{calls: "a:connect a:ok"}},
		{name: "accepted and never answered", a: "hang", silent: true,
			request: overToB("timeout", shortLimit), stream: overToB("first_token_timeout", shortLimit)},
		{name: "accepted and never answered by any", a: "hang", b: "hang", silent: true, timeout: 1500 * time.Millisecond,
			request: want{calls: "a:timeout b:timeout", code: llm.CodeDeadline, after: 1390 * time.Millisecond},
			stream:  want{calls: "a:first_token_timeout b:timeout", code: llm.CodeDeadline, after: 1390 * time.Millisecond}},
		{name: "headers at once, the first token late", a: "slow-first-20", silent: true,
			request: overToB("timeout", shortLimit), stream: overToB("first_token_timeout", shortLimit)},
		{name: "cut after 40 of 60 tokens", a: "cut-after-40-t60", on: protocols,
			request: overToB("unavailable", 0), stream: brokenOff("stream_interrupted", 40)},
		{name: "reset after 40 of 60 tokens", a: "reset-after-40-t60",
			request: overToB("unavailable", 0), stream: brokenOff("stream_interrupted", 40)},
		{name: "cut after 40 of 60 tokens, begun again elsewhere", a: "cut-after-40-t60", tune: restart,
			request: overToB("unavailable", 0), stream: overToB("stream_interrupted", 0)},
		{name: "cut after 40 of 60 tokens, and the next rejects the transcript", a: "cut-after-40-t60", b: "400", tune: restart,
			request: want{calls: "a:unavailable b:invalid_request", code: llm.CodeInvalidRequest},
			stream:  want{calls: "a:stream_interrupted b:invalid_request", code: llm.CodeInterrupted, words: 40}},
		{name: "cut after 40 of 60 tokens, and the next is down", a: "cut-after-40-t60", b: "503", tune: restart,
			request: want{calls: "a:unavailable b:unavailable", code: llm.CodeUnavailable},
			stream:  want{calls: "a:stream_interrupted b:unavailable", code: llm.CodeInterrupted, words: 40}},
		{name: "stalled after 20 of 60 tokens", a: "stall-after-20-t60", stalled: true, on: protocols,
			request: overToB("timeout", shortLimit), stream: want{calls: "a:idle_timeout", code: llm.CodeInterrupted, words: 20, after: shortLimit}},
		{name: "a malformed chunk", a: "malformed", on: protocols,
			request: overToB("unavailable", 0), stream: brokenOff("stream_interrupted", 2)},
		{name: "an error in mid-stream", a: "error-after-3", on: protocols,
			request: overToB("unavailable", 0), stream: brokenOff("stream_interrupted", 3)},
		{name: "a proper end of the body without a finish reason", a: "end-after-4", on: protocols,
			request: overToB("unavailable", 0), stream: brokenOff("stream_interrupted", 4)},
		{name: "no terminator after the finish reason", a: "no-done", on: protocols[:2],
			request: want{calls: "a:ok"}, stream: want{calls: "a:ok"}},
		{name: "no terminator, which holds the finish reason", a: "no-done", on: protocols[2:],
			request: want{calls: "a:ok"}, stream: brokenOff("stream_interrupted", 12)},
		{name: "an empty answer", a: "empty", on: protocols,
			request: overToB("invalid_output", 0), stream: overToB("invalid_output", 0)},
	}
}

// Most of the time goes by in waits, so that several run at once.
func TestCrashOnTheWire(t *testing.T) {
	var wg sync.WaitGroup
	defer wg.Wait()
	turns := make(chan struct{}, 8)
	for i, fault := range wireFaults() {
		for _, pair := range fault.pairs(i) {
			for way, streamed := range ways {
				turns <- struct{}{}
				wg.Go(func() {
					t.Run(fault.name+"/"+pair[0]+"/"+way, func(t *testing.T) { fault.run(t, pair, streamed) })
					<-turns
				})
			}
		}
	}
}

// limits are those of a target.
func (w wireFault) limits(streamed bool) (call time.Duration, limits provider.Timeouts) {
	call, limits = ample, provider.Timeouts{FirstToken: ample, Idle: ample}
	switch {
	case w.silent && streamed:
		limits.FirstToken = shortLimit
	case w.stalled && streamed:
		limits.Idle = shortLimit
	case w.silent, w.stalled:
		call = shortLimit
	}
	return call, limits
}

var protocols = []string{"openai", "anthropic", "ollama"}

// pairs are the protocols of a and b of the i-th scenario.
func (w wireFault) pairs(i int) (list [][2]string) {
	first := w.on
	if first == nil {
		first = []string{protocols[i%len(protocols)]}
	}
	for _, a := range first {
		list = append(list, [2]string{a, protocols[(slices.Index(protocols, a)+1)%len(protocols)]})
	}
	return list
}

// run starts a fleet whose target a is an adapter of the first protocol and b
// one of the second, and asks once.
func (w wireFault) run(t *testing.T, pair [2]string, streamed bool) {
	server := simtest.Start(t)
	for i, fault := range []string{w.a, w.b} {
		rule := sim.Rule{Fault: fault, Provider: pair[i]}
		if w.once && i == 0 {
			rule.Times = 1
		}
		if fault != "" {
			require.NoError(t, server.Control(rule))
		}
	}
	p := inBubble(t)
	p.providers = make([]*fake.Provider, len(pair)) // their places
	p.feature = func(f *chain.Feature) {
		for i := range f.Targets {
			target := &f.Targets[i]
			target.Completer, target.Attempts = adapter(t, pair[i], server), cmp.Or(w.attempts, 1)
			target.Timeout, target.Limits = w.limits(streamed)
		}
		if w.tune != nil {
			w.tune(f)
		}
	}
	got := askOnce(t, p, question{stream: streamed, class: w.class, timeout: cmp.Or(w.timeout, 10*time.Second)})
	expected := w.request
	if streamed {
		expected = w.stream
	}
	stats := server.Stats()
	expected.check(t, got, map[string]int{"a": stats.Providers[pair[0]], "b": stats.Providers[pair[1]]})
}

// closer is an adapter, whose idle connections can be closed.
type closer interface {
	llm.Completer
	Close()
}

// adapter makes one of a protocol; every worker has its own.
func adapter(t testing.TB, protocol string, server *sim.Server) closer {
	t.Helper()
	switch protocol {
	case "openai":
		p, err := openai.New(openai.Config{BaseURL: server.URL()})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		return p
	case "anthropic":
		p, err := anthropic.New(anthropic.Config{BaseURL: server.URL()})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		return p
	}
	p, err := ollama.New(ollama.Config{BaseURL: server.URL()})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}
