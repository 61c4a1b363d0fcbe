package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// result is one side in one round. A field that a scenario does not have is 0.
type result struct {
	Scenario string  `json:"scenario"`
	Side     string  `json:"side"`
	Round    int     `json:"round"`
	Rate     float64 `json:"rps"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	First50  float64 `json:"first_p50_us"`
	First99  float64 `json:"first_p99_us"`
	CPU      float64 `json:"cpu_us_per_request"`    // of the worker and its NATS server
	Worker   float64 `json:"worker_us_per_request"` // of the worker alone
	CPUToken float64 `json:"cpu_us_per_token"`
	Peak     float64 `json:"peak_rss_kib"`   // of the same
	Own      float64 `json:"worker_rss_kib"` // of the worker alone
	Idle     float64 `json:"kib_per_stream"` // the same
}

const warmUp = 500 * time.Millisecond

// rounds runs a scenario on all its sides.
func (l *lab) rounds(ctx context.Context, sc scenario, o options) (map[string][]result, error) {
	sides := l.shared
	if sc.inside {
		sides = l.inside
	}
	results := map[string][]result{}
	for round := range sc.roundsOf(o) {
		for i := range sides { // each round begins with another side
			s := sides[(i+round)%len(sides)]
			r, err := measure(ctx, s, sc, o.span)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			r.Scenario, r.Side, r.Round = sc.name, s.name, round
			results[s.name] = append(results[s.name], r)
			if err := record(o.out, r); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

func measure(ctx context.Context, s side, sc scenario, span time.Duration) (r result, err error) {
	c, err := gather(s, sc)
	if err != nil {
		return r, err
	}
	defer c.leave()
	if sc.idle > 0 {
		return weigh(ctx, c, s)
	}
	if _, err := c.drive(ctx, sc, warmUp); err != nil {
		return r, err
	}
	if err := forgetPeak(s.pids); err != nil {
		return r, err
	}
	before, err := cpuTime(s.pids)
	if err != nil {
		return r, err
	}
	alone, err := cpuTime(s.worker)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	got, err := c.drive(ctx, sc, span)
	if err != nil {
		return r, err
	}
	took := time.Since(begun)
	after, err := cpuTime(s.pids)
	if err != nil {
		return r, err
	}
	own, err := cpuTime(s.worker)
	if err != nil {
		return r, err
	}
	r = summary(got, took, after-before)
	r.Worker = micros(own-alone) / float64(max(1, len(got)))
	if r.Own, err = peak(s.worker); err != nil {
		return r, err
	}
	r.Peak, err = peak(s.pids)
	return r, err
}

func summary(got []answered, took, cpu time.Duration) result {
	var whole, first []time.Duration
	tokens := 0
	for _, a := range got {
		whole, first, tokens = append(whole, a.whole), append(first, a.first), tokens+a.tokens
	}
	n := float64(max(1, len(got)))
	return result{
		Rate: n / took.Seconds(), P50: quantile(whole, 0.5), P99: quantile(whole, 0.99),
		First50: quantile(first, 0.5), First99: quantile(first, 0.99),
		CPU: micros(cpu) / n, CPUToken: micros(cpu) / float64(max(1, tokens)),
	}
}

func quantile(values []time.Duration, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return micros(values[min(int(q*float64(len(values))), len(values)-1)])
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// weigh asks with all callers at once, for streams that fall silent after their
// first token, and sees what the worker has grown by.
func weigh(ctx context.Context, c *crowd, s side) (r result, err error) {
	before, err := resident(s.worker[0])
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, who := range c.callers {
		if err := who.send(who.inbox + "0"); err != nil {
			return r, err
		}
	}
	for _, who := range c.callers {
		for seen := false; !seen; {
			m, err := who.sub.NextMsgWithContext(ctx)
			if err != nil {
				return r, err
			}
			seen = len(m.Data) > 0
		}
	}
	time.Sleep(time.Second) // what was needed to begin may be given back
	after, err := resident(s.worker[0])
	r.Idle = max(0, after-before) / float64(len(c.callers))
	return r, err
}
