package main

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// scenario is one kind of load.
type scenario struct {
	name    string
	callers int
	prompt  int     // bytes
	model   string  // how the provider behaves; see behaviour
	stream  bool    // ask for a stream
	rate    float64 // requests a second, whatever the answers do; 0: each caller asks as soon as it is answered
	inside  bool    // the NATS server is part of the worker
	idle    int     // streams that wait, to weigh them; 0: the scenario counts requests

	features int // the broker is asked for so many in turn, named as the model and a number; 0: for the model
	tenants  int // in whose name the requests come, in turn; 0: in nobody's
}

// to gives a side the next request's subject and headers. The floor knows
// neither features nor tenants, and costs the same.
func (s *scenario) to(of side) func() (string, nats.Header) {
	var n int
	return func() (subject string, h nats.Header) {
		n += 7919 // a prime, so that callers that started together spread out
		if of.name == "floor" || s.features == 0 {
			subject = of.subject(s.model)
		} else {
			subject = of.subject(featureName(n % s.features))
		}
		if s.tenants > 0 {
			h = nats.Header{subjects.HeaderTenant: {fmt.Sprintf("tenant-%d", n%s.tenants)}}
		}
		return subject, h
	}
}

const kib = 1 << 10

var scenarios = []scenario{
	{name: "plain", callers: 50, prompt: kib, model: "tokens-200"},
	{name: "plain-200-callers", callers: 200, prompt: kib, model: "tokens-200"},
	{name: "plain-64k-prompt", callers: 50, prompt: 64 * kib, model: "tokens-200"},
	{name: "plain-embedded", callers: 50, prompt: kib, model: "tokens-200", inside: true},
	{name: "one-caller", callers: 1, prompt: kib, model: "tokens-200"},
	{name: "slow-provider", callers: 200, prompt: kib, model: "tokens-200_first-100ms", rate: 300},
	{name: "burst", callers: 50, prompt: kib, model: "tokens-200", stream: true},
	{name: "pace", callers: 200, prompt: kib, model: "tokens-100_first-100ms_gap-20ms", stream: true, rate: 25},
	{name: "idle-streams", prompt: kib, model: "tokens-3_first-1ms_gap-20s", stream: true, idle: 2000},
}

// models are all that the scenarios ask for. A broker serves each as a feature
// of that name.
func models() []string {
	var list []string
	known := map[string]bool{}
	for _, s := range scenarios {
		if !known[s.model] {
			known[s.model] = true
			list = append(list, s.model)
		}
	}
	return list
}

// roundsOf is how often a scenario runs. Streams that wait are weighed once, on
// a worker that has seen none.
func (s *scenario) roundsOf(o options) int {
	if s.idle > 0 {
		return 1
	}
	return o.rounds
}

func (s *scenario) pace() string {
	if s.rate == 0 {
		return "as fast as answers come"
	}
	return fmt.Sprintf("%g/s", s.rate)
}

// patience is how long a caller waits for an answer.
const patience = 30 * time.Second
