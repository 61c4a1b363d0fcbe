package e2e

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// The service time of a worker, and of the one that is ten times slower.
const (
	brisk = 50 * time.Millisecond
	slow  = 500 * time.Millisecond
	slots = 8
)

// tired adds to the time that a worker takes for each request.
type tired struct {
	llm.Completer
	more time.Duration
}

func (c tired) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	timer := time.NewTimer(c.more)
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.Completer.Complete(ctx, req)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c tired) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return c.Completer.Stream(ctx, req)
}

// skewed is a fleet of four and callers that come at a steady rate, however
// long the answers take: about half of what four even workers can do.
type skewed struct {
	*fleet
	client *client.Client
	tick   *time.Ticker

	asking sync.WaitGroup
	mu     sync.Mutex
	took   []time.Duration
	failed []error
}

func startSkewed(t testing.TB, handicap time.Duration) *skewed {
	p, _ := onSockets(t)
	p.slots, p.providers = slots, []*fake.Provider{fake.New(fake.Step{Wait: brisk, Pieces: []string{"served"}})}
	first := true
	p.bus = func(c *bus.Config) {
		if first && handicap > 0 {
			c.Completer = tired{c.Completer, handicap}
		}
		first = false
	}
	s := &skewed{fleet: startFleet(t, 4, p), tick: time.NewTicker(time.Second / 240)}
	var err error
	s.client, err = client.New(s.caller, client.WithTimeout(5*time.Second))
	require.NoError(t, err)
	return s
}

// ask sends one request when its time has come and does not wait for it.
func (s *skewed) ask() {
	<-s.tick.C
	s.asking.Go(func() {
		began := time.Now()
		_, err := s.client.Complete(context.Background(), greeting())
		took := time.Since(began)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.failed = append(s.failed, err)
		}
		s.took = append(s.took, took)
	})
}

func (s *skewed) end() {
	s.asking.Wait()
	s.tick.Stop()
	s.halt()
}

// One of four workers is ten times slower, which its slots cannot hold. Busy
// answers send its callers elsewhere and it leaves the group: all are served.
func TestLoadASlowWorkerFailsNobody(t *testing.T) {
	s := startSkewed(t, slow-brisk)
	for range 600 {
		s.ask()
	}
	s.end()
	require.Empty(t, s.failed)
	t.Logf("p50 %s, p99 %s", percentile(s.took, 0.5), percentile(s.took, 0.99))
}

// How much later answers come when one of four workers is ten times slower.
// Run it with -benchtime 14400x, a minute each.
func BenchmarkSkew(b *testing.B) {
	for name, handicap := range map[string]time.Duration{"even": 0, "skewed": slow - brisk} {
		b.Run(name, func(b *testing.B) {
			s := startSkewed(b, handicap)
			for b.Loop() {
				s.ask()
			}
			s.end()
			require.Empty(b, s.failed)
			report(b, s.took)
		})
	}
}
