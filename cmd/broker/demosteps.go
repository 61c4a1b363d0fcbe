package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

const (
	primary      = "primary"
	primaryModel = "model-a"
	primaryKind  = "openai" // the protocol by which the simulator knows it
	burst        = 60
)

var primaryKey = subjects.BreakerKey(primary, primaryModel)

func question(text string) *llm.Request {
	return &llm.Request{Feature: demoFeature, Messages: []llm.Message{message(llm.RoleUser, text)}}
}

// expect asks once and demands who answers.
func (s *stage) expect(ctx context.Context, provider string) (*llm.Response, error) {
	resp, err := s.client.Complete(ctx, question("hello"))
	if err != nil {
		return nil, err
	}
	if resp.Provider != provider {
		return nil, fmt.Errorf("%s answered instead of %s", resp.Provider, provider)
	}
	return resp, nil
}

func (s *stage) answer(ctx context.Context) error {
	resp, err := s.expect(ctx, primary)
	if err != nil {
		return err
	}
	s.say("answer", "%s/%s in %d ms: %s", resp.Provider, resp.Model, resp.Timing.TotalMS, resp.Content)
	return nil
}

func (s *stage) streamed(ctx context.Context) error {
	if err := s.sim.Control(sim.Rule{Fault: "ok-t12-g60ms"}); err != nil {
		return err
	}
	defer s.sim.Clear()
	fmt.Fprintf(s.out, "%-9s ", "stream")
	pieces, whole := 0, false
	for f, err := range s.client.Stream(ctx, question("hello")) {
		if err != nil {
			return err
		}
		switch f.Type {
		case llm.FrameDelta:
			pieces++
			fmt.Fprint(s.out, f.Text)
		case llm.FrameEnd:
			whole = true
			fmt.Fprintf(s.out, " (%d pieces, first after %d ms)\n", pieces, f.Response.Timing.FirstTokenMS)
		}
	}
	if !whole || pieces < 2 {
		return fmt.Errorf("the stream had %d pieces", pieces)
	}
	return nil
}

// outage breaks the primary until its breaker is open everywhere.
func (s *stage) outage(ctx context.Context) error {
	if err := s.sim.Control(sim.Rule{Fault: "status-503", Provider: primaryKind}); err != nil {
		return err
	}
	s.say("outage", "%s now answers 503 to every call", primary)
	before, asked := s.sim.Calls(primaryModel), 0
	for !s.everywhere(ctx, breaker.Open) {
		resp, err := s.expect(ctx, "backup")
		if err != nil {
			return err
		}
		if asked++; asked == 1 {
			s.say("failover", "backup answered in %d ms, after %s failed: the caller saw an answer and no error", resp.Timing.TotalMS, primary)
		}
		if asked > 50 {
			return errors.New("the breaker did not open")
		}
	}
	s.say("breaker", "open at all %d workers after %d failures, counted over the fleet (threshold 3)", demoWorkers, s.sim.Calls(primaryModel)-before)
	return nil
}

// everywhere reports whether every worker sees the primary's breaker so.
func (s *stage) everywhere(ctx context.Context, state breaker.State) bool {
	return s.all(ctx, func(b breaker.Status) bool { return b.State == state })
}

func (s *stage) all(ctx context.Context, is func(breaker.Status) bool) bool {
	reports, err := gather(ctx, s.nc, demoWorkers)
	if err != nil || len(reports) != demoWorkers {
		return false
	}
	for _, r := range reports {
		i := slices.IndexFunc(r.Details.Breakers, func(b breaker.Status) bool { return b.Key == primaryKey })
		if i < 0 || !is(r.Details.Breakers[i]) {
			return false
		}
	}
	return true
}

// skipped shows that nobody calls an open target.
func (s *stage) skipped(ctx context.Context) error {
	before := s.sim.Calls(primaryModel)
	for range burst / 3 {
		if _, err := s.expect(ctx, "backup"); err != nil {
			return err
		}
	}
	if calls := s.sim.Calls(primaryModel) - before; calls != 0 {
		return fmt.Errorf("%d calls reached %s although its breaker was open", calls, primary)
	}
	s.say("skipped", "%d more requests: backup answered all, 0 calls reached %s", burst/3, primary)
	return nil
}

// probed lets the cool-down pass and sends many requests at once.
func (s *stage) probed(ctx context.Context) error {
	s.sim.Clear()
	if err := s.sim.Control(sim.Rule{Fault: "ok-t12-g50ms", Provider: primaryKind}); err != nil { // so that the probe takes a while
		return err
	}
	for !s.all(ctx, func(b breaker.Status) bool { return b.RetryMS == 0 }) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	before := s.sim.Calls(primaryModel)
	served, err := s.storm(ctx)
	if err != nil {
		return err
	}
	if calls := s.sim.Calls(primaryModel) - before; calls != 1 || served[primary] != 1 {
		return fmt.Errorf("%d probes instead of 1", calls)
	}
	s.say("probe", "%d requests at once after the cool-down: 1 probed %s, %d went to backup", burst, primary, served["backup"])
	return s.transitions(ctx)
}

// transitions shows what a plain subscriber saw from the beginning.
func (s *stage) transitions(ctx context.Context) error {
	want := []string{string(breaker.Open), string(breaker.HalfOpen), string(breaker.Closed)}
	var states []string
	for len(states) < len(want) {
		msg, err := s.changes.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		record, err := breaker.DecodeRecord(msg.Data)
		if err != nil {
			return err
		}
		states = append(states, string(record.State))
	}
	if !slices.Equal(states, want) {
		return fmt.Errorf("the breaker went %v", states)
	}
	s.say("watcher", "a plain NATS subscriber saw the breaker %s", strings.Join(states, ", "))
	return nil
}

// storm sends many requests at once and counts who answered.
func (s *stage) storm(ctx context.Context) (map[string]int, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	served := map[string]int{}
	for range burst {
		wg.Go(func() {
			resp, err := s.client.Complete(ctx, question("hello"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			served[resp.Provider]++
		})
	}
	wg.Wait()
	return served, failed
}

func (s *stage) recovered(ctx context.Context) error {
	s.sim.Clear()
	for !s.everywhere(ctx, breaker.Closed) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	served, err := s.storm(ctx)
	if err != nil {
		return err
	}
	if served[primary] != burst {
		return fmt.Errorf("%s answered %d of %d", primary, served[primary], burst)
	}
	s.say("recovery", "the probe closed the breaker: %s answered %d of %d", primary, served[primary], burst)
	return nil
}

// switched flips the kill switch while requests come, and back.
func (s *stage) switched(ctx context.Context) error {
	key := kv.FeatureKey(demoFeature)
	if _, err := kv.SetFlag(ctx, s.buckets.Flags, kv.Flag{Key: key, Reason: "demo"}); err != nil {
		return err
	}
	stored, last, refused := time.Now(), time.Duration(0), 0
	for refused < burst/2 {
		_, err := s.client.Complete(ctx, question("hello"))
		switch {
		case err == nil:
			last, refused = time.Since(stored), 0
		case errors.Is(err, llm.ErrSwitchedOff):
			refused++
		default:
			return err
		}
	}
	if last > time.Second {
		return fmt.Errorf("a model still answered %s after the switch was stored", last)
	}
	when := "none answered after the switch was stored"
	if last > 0 {
		when = fmt.Sprintf("the last answer came %.1f ms after the switch was stored", float64(last.Microseconds())/1000)
	}
	s.say("switch", "%s off: %d requests refused, %s", key, refused, when)
	if err := kv.ClearFlag(ctx, s.buckets.Flags, key); err != nil {
		return err
	}
	for {
		_, err := s.expect(ctx, primary)
		if err == nil {
			break
		}
		if !errors.Is(err, llm.ErrSwitchedOff) {
			return err
		}
	}
	s.say("switch", "%s cleared: %s answers again", key, primary)
	return nil
}
