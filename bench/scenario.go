package main

import (
	"fmt"
	"time"
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
