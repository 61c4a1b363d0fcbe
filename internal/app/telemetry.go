package app

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/provider/openai"
	"github.com/llmbus/llmbus/subjects"
	"github.com/llmbus/llmbus/telemetry"
)

const (
	queueAge      = time.Second // figures of the queue are shared by readings within
	queuePatience = time.Second
)

// newTelemetry makes the metrics and traces of a worker.
func (w *worker) newTelemetry(ctx context.Context) (err error) {
	w.telemetry, err = w.App.newTelemetry(ctx, telemetry.Config{Read: w.reading, ProviderName: w.providerName, Tenants: w.env.MetricsTenants})
	return err
}

// followers go along with every request.
func (w *worker) followers() []chain.Follower {
	all := []chain.Follower{w.usage}
	if w.telemetry != nil {
		all = append(all, w.telemetry)
	}
	return all
}

// observer hears of what happens to requests.
func (w *worker) observer() chain.Observer {
	if w.telemetry == nil {
		return w.events
	}
	return observers{w.events, w.telemetry}
}

// observers all hear of an event.
type observers []chain.Observer

// Observe tells them in order.
func (all observers) Observe(e chain.Event) {
	for _, o := range all {
		o.Observe(e)
	}
}

// requestLog names the trace of a request in its log line.
func (w *worker) requestLog() *slog.Logger {
	if w.telemetry == nil {
		return w.log
	}
	return telemetry.Log(w.log)
}

// circuitChanged tells who listens and who counts.
func (w *worker) circuitChanged(c breaker.Change) {
	w.events.circuit(c)
	if w.telemetry != nil && c.Mine {
		provider, model, _ := subjects.ParseBreakerKey(c.Key)
		w.telemetry.BreakerChanged(provider, model, string(c.To))
	}
}

// countFlips counts the flips that this worker obeys.
func (w *worker) countFlips(flips []kv.Flip) {
	if w.telemetry == nil {
		return
	}
	for _, f := range flips {
		if scope := switchScope(f.New.Key); scope != "" {
			w.telemetry.SwitchFlipped(scope, f.New.On)
		}
	}
}

// switchScopes are the first words of the keys of switches.
func switchScopes() []string {
	return []string{"all", "feature", "provider", "model", "tenant", "failover"}
}

// switchScope says what a key switches without naming it.
func switchScope(key string) string {
	word, _, _ := strings.Cut(key, ".")
	if !slices.Contains(switchScopes(), word) {
		return ""
	}
	return word
}

// reading is the state of this worker now.
func (w *worker) reading() telemetry.Reading {
	b := w.bus.Load()
	if b == nil { // the other parts may be on their way, too
		return telemetry.Reading{State: string(bus.Starting)}
	}
	s := b.Stats()
	r := telemetry.Reading{State: string(b.State()), InFlight: s.InFlight, Slots: s.Slots, Degraded: w.breakers.Degraded(),
		Messages: map[string]int64{"": s.Succeeded}, Off: map[string]int{}, Jobs: w.depth.read(w.streams)}
	for code, n := range s.Errors {
		r.Messages[string(code)] = n
	}
	for _, b := range w.breakers.Snapshot() {
		provider, model, _ := subjects.ParseBreakerKey(b.Key)
		r.Breakers = append(r.Breakers, telemetry.Breaker{Provider: provider, Model: model, State: string(b.State)})
	}
	for _, scope := range switchScopes() {
		r.Off[scope] = 0
	}
	flags, _ := w.flags.Current(context.Background())
	for _, f := range flags.List() {
		if scope := switchScope(f.Key); scope != "" && !f.On {
			r.Off[scope]++
		}
	}
	if refused := w.policy.refused.Load(); refused != nil {
		r.Refused = len(*refused)
	}
	return r
}

// providerName is OpenTelemetry's name for a provider that is in force.
func (w *worker) providerName(name string) string {
	p := w.policy.inForce.Load().Provider(name)
	switch {
	case p == nil: // a request that began before the configuration changed
		return name
	case p.Kind == config.KindGemini:
		return "gcp.gemini"
	case p.Kind == config.KindAnthropic:
		return "anthropic"
	case p.Kind != config.KindOpenAI:
		return name
	case p.OpenAI.Azure != nil:
		return "azure.ai.openai"
	case p.OpenAI.Family == openai.FamilyMistral:
		return "mistral_ai"
	case p.OpenAI.Family == openai.FamilyCompatible:
		return name
	}
	return "openai"
}

// depth remembers the queue's figures for a moment, since several readers may
// ask at once.
type depth struct {
	mu   sync.Mutex
	when time.Time
	last *telemetry.Jobs
}

func (d *depth) read(s *jobs.Streams) *telemetry.Jobs {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.when) < queueAge {
		return d.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), queuePatience)
	defer cancel()
	now, err := s.Depth(ctx)
	if d.when, d.last = time.Now(), nil; err == nil {
		d.last = &telemetry.Jobs{Pending: now.Pending, InHand: now.InHand, Dead: now.Dead}
	}
	return d.last
}
