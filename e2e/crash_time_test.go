package e2e

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

// longFault is a fault whose times are too long for a clock on the wall.
// Targets are called a, b, c in order.
type longFault struct {
	name     string
	fakes    []*fake.Provider // made anew for each run by longFaults
	attempts int              // of each target; 0 is 1
	class    llm.Class
	tune     func(*chain.Feature)

	request, stream want
}

const (
	longDeadline   = 30 * time.Second // the caller's
	longTimeout    = 12 * time.Second // of one call
	longFirstToken = 5 * time.Second
	longIdle       = 10 * time.Second
)

func failure(outcome llm.Outcome, after time.Duration) *provider.Failure {
	f := provider.Fail(outcome, nil)
	if after > 0 {
		f.RetryAfter = &after
	}
	return f
}

// windows declares the targets' context windows.
func windows(tokens ...int) func(*chain.Feature) {
	return func(f *chain.Feature) {
		for i := range f.Targets {
			f.Targets[i].Can.ContextWindow = tokens[i]
		}
	}
}

// stalls falls silent for so long when half of its answer is out.
func stalls(d time.Duration) *fake.Provider {
	return fake.Func(func(_ int, req *llm.Request) fake.Step {
		if req.Stream {
			return fake.Step{Pieces: []string{"one two ", "three four"}, Gap: d}
		}
		return fake.Step{Wait: d, Pieces: []string{"one two three four"}}
	})
}

// filters stops in the middle of its answer.
func filters() *fake.Provider {
	return fake.New(fake.Step{Pieces: []string{"one two"}, Err: failure(llm.OutcomeContentFiltered, 0)})
}

func always(err error) *fake.Provider { return fake.New(fake.Fails(err)) }

func failsOnce(err error) *fake.Provider {
	return fake.New(fake.Fails(err), fake.Answer("from a"))
}

func late(d time.Duration) *fake.Provider {
	return fake.New(fake.Step{Wait: d, Pieces: []string{"late"}})
}

func good() *fake.Provider { return fake.New(fake.Answer("good")) }

func moment(calls string, at time.Duration) want {
	return want{calls: calls, after: at, within: at + 50*time.Millisecond}
}

func (w want) fails(code llm.Code) want {
	w.code = code
	return w
}

// longFaults are the scenarios: what happens to the targets, and how it ends.
// A background request waits for what a provider asks, a back-off of up to
// 200 ms, 400 ms … and up to a tenth, by which workers spread their return.
func longFaults() []longFault {
	limited := failure(llm.OutcomeRateLimited, 2*time.Second)
	tooLong := failure(llm.OutcomeContextLength, 0)
	refused := failure(llm.OutcomeContentFiltered, 0)
	return append(waits(),
		longFault{name: "429 with Retry-After 2 once, a person waits", fakes: []*fake.Provider{failsOnce(limited), good()}, attempts: 2,
			request: moment("a:rate_limited b:ok", 0), stream: moment("a:rate_limited b:ok", 0)},
		longFault{name: "accepted and never answered", fakes: []*fake.Provider{fake.New(fake.Hangs()), good()},
			request: moment("a:timeout b:ok", longTimeout), stream: moment("a:first_token_timeout b:ok", longFirstToken)},
		longFault{name: "accepted and never answered by any", fakes: []*fake.Provider{fake.New(fake.Hangs()), fake.New(fake.Hangs())},
			request: moment("a:timeout b:timeout", longDeadline-100*time.Millisecond).fails(llm.CodeDeadline),
			stream:  moment("a:first_token_timeout b:timeout", longDeadline-100*time.Millisecond).fails(llm.CodeDeadline)},
		longFault{name: "first token after 20 s", fakes: []*fake.Provider{late(20 * time.Second), good()},
			request: moment("a:timeout b:ok", longTimeout), stream: moment("a:first_token_timeout b:ok", longFirstToken)},
		longFault{name: "first token after 20 s and nobody else to ask", fakes: []*fake.Provider{late(20 * time.Second)},
			request: moment("a:ok", 20*time.Second), stream: moment("a:ok", 20*time.Second)},
		longFault{name: "first token after 20 s from the second too", fakes: []*fake.Provider{late(20 * time.Second), late(12 * time.Second)},
			request: moment("a:timeout b:ok", longTimeout+12*time.Second), stream: moment("a:first_token_timeout b:ok", longFirstToken+12*time.Second)},
		longFault{name: "30 s stall in mid-stream", fakes: []*fake.Provider{stalls(30 * time.Second), good()},
			request: moment("a:timeout b:ok", longTimeout),
			stream:  want{calls: "a:idle_timeout", code: llm.CodeInterrupted, words: 2, after: longIdle, within: longIdle + time.Second}},
		longFault{name: "30 s stall in mid-stream, begun again elsewhere", fakes: []*fake.Provider{stalls(30 * time.Second), good()}, tune: restart,
			request: moment("a:timeout b:ok", longTimeout), stream: moment("a:idle_timeout b:ok", longIdle)},
		longFault{name: "context length exceeded, larger window second", fakes: []*fake.Provider{always(tooLong), good()}, tune: windows(1000, 8000),
			request: moment("a:context_length b:ok", 0), stream: moment("a:context_length b:ok", 0)},
		longFault{name: "context length exceeded, larger window third", fakes: []*fake.Provider{always(tooLong), good(), good()}, tune: windows(1000, 500, 8000),
			request: moment("a:context_length c:ok", 0), stream: moment("a:context_length c:ok", 0)},
		longFault{name: "context length exceeded, no larger window", fakes: []*fake.Provider{always(tooLong), good()}, tune: windows(1000, 1000),
			request: moment("a:context_length", 0).fails(llm.CodeContextLength), stream: moment("a:context_length", 0).fails(llm.CodeContextLength)},
		longFault{name: "content filter", fakes: []*fake.Provider{always(refused), good()},
			request: moment("a:content_filtered", 0).fails(llm.CodeContentFiltered), stream: moment("a:content_filtered", 0).fails(llm.CodeContentFiltered)},
		longFault{name: "content filter in mid-stream", fakes: []*fake.Provider{filters(), good()},
			request: moment("a:content_filtered", 0).fails(llm.CodeContentFiltered),
			stream:  want{calls: "a:content_filtered", code: llm.CodeContentFiltered, words: 2}},
		longFault{name: "content filter, another may be asked", fakes: []*fake.Provider{always(refused), good()},
			tune:    func(f *chain.Feature) { f.OnRefusal = chain.FailOver },
			request: moment("a:content_filtered b:ok", 0), stream: moment("a:content_filtered b:ok", 0)},
	)
}

// waits are the scenarios in which time goes by on purpose.
func waits() []longFault {
	limited := failure(llm.OutcomeRateLimited, 2*time.Second)
	closed := failure(llm.OutcomeRateLimited, time.Minute)
	wait := func(f *chain.Feature) { f.OnRateLimit = chain.RateLimitWait }
	one := want{calls: "a:rate_limited a:ok", after: 2 * time.Second, within: 2500 * time.Millisecond}
	two := want{calls: "a:rate_limited a:rate_limited a:rate_limited b:ok", after: 4 * time.Second, within: 5100 * time.Millisecond}
	all := want{calls: "a:rate_limited a:rate_limited b:rate_limited b:rate_limited", after: 4 * time.Second, within: 4900 * time.Millisecond,
		code: llm.CodeRateLimited, again: true}
	none := moment("a:rate_limited b:rate_limited", 0).fails(llm.CodeRateLimited)
	none.again = true
	return []longFault{
		{name: "429 with Retry-After 2 once, nobody waits", fakes: []*fake.Provider{failsOnce(limited), good()}, attempts: 2, class: llm.ClassBackground,
			request: one, stream: one},
		{name: "429 with Retry-After 2 once, the feature waits", fakes: []*fake.Provider{failsOnce(limited), good()}, attempts: 2, tune: wait,
			request: one, stream: one},
		{name: "429 for ever, nobody waits", fakes: []*fake.Provider{always(limited), good()}, attempts: 3, class: llm.ClassBackground,
			request: two, stream: two},
		{name: "429 for ever from all, nobody waits", fakes: []*fake.Provider{always(limited), always(limited)}, attempts: 2, class: llm.ClassBackground,
			request: all, stream: all},
		{name: "429 with a Retry-After beyond the deadline", fakes: []*fake.Provider{always(closed), always(closed)}, attempts: 2, class: llm.ClassBackground,
			request: none, stream: none},
	}
}

func TestCrashInLongTimes(t *testing.T) {
	for i, fault := range longFaults() {
		for way, streamed := range ways {
			t.Run(strings.ReplaceAll(fault.name, "/", " ")+"/"+way, func(t *testing.T) {
				natstest.Bubble(t, func(t *testing.T) { longFaults()[i].run(t, streamed) })
			})
		}
	}
}

func (l longFault) run(t *testing.T, streamed bool) {
	p := inBubble(t)
	p.providers = l.fakes
	p.feature = func(f *chain.Feature) {
		f.Timeout = time.Minute
		for i := range f.Targets {
			f.Targets[i].Attempts, f.Targets[i].Timeout = cmp.Or(l.attempts, 1), longTimeout
			f.Targets[i].Limits = provider.Timeouts{FirstToken: longFirstToken, Idle: longIdle}
		}
		if l.tune != nil {
			l.tune(f)
		}
	}
	got := askOnce(t, p, question{stream: streamed, class: l.class, timeout: longDeadline})
	expected := l.request
	if streamed {
		expected = l.stream
	}
	made := map[string]int{}
	for i, c := range l.fakes {
		made[string(rune('a'+i))] = c.Count()
	}
	expected.check(t, got, made)
}
