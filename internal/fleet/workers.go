package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/subjects"
)

const (
	maxWorkers = 1000
	maxKnown   = 10_000 // features whose first target is known
	missing    = 3      // questions without an answer make a worker silent
	forgotten  = 30 * time.Second
)

// report is what a worker answers on llm.status, as far as it is shown.
type report struct {
	Worker  string `json:"worker"`
	Version string `json:"version"`
	State   string `json:"state"`
	Stats   struct {
		Requests int64 `json:"requests"`
		Busy     int64 `json:"busy"`
		InFlight int   `json:"in_flight"`
		Slots    int   `json:"slots"`
	} `json:"stats"`
	Details struct {
		Worker   string `json:"worker"`
		NATS     string `json:"nats"`
		Degraded bool   `json:"degraded"`
		Features []struct {
			Name    string   `json:"name"`
			Targets []string `json:"targets"` // provider/model
		} `json:"features"`
		Refused  []string         `json:"refused"`
		Breakers []breaker.Status `json:"breakers"`
	} `json:"details"`
}

// worker is the last that one worker said.
type worker struct {
	report
	heard time.Time
}

// ask puts the question to all workers again and again, and takes their answers
// whenever they come.
func (w *Watch) ask(ctx context.Context) error {
	inbox, answers := w.conn.NewInbox(), make(chan *nats.Msg, replyBuffer)
	sub, err := w.conn.ChanSubscribe(inbox, answers)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only with the connection
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if w.conn.IsConnected() { // a question is not worth keeping until a reconnect
				_ = w.conn.PublishRequest(subjects.Status, inbox, nil) // fails only with the connection
			}
			timer.Reset(w.interval)
		case <-w.kick:
			timer.Reset(min(askAgain, w.interval))
		case msg := <-answers:
			w.answered(msg, time.Now())
			w.had(PartWorkers)
		case <-ctx.Done():
			return nil
		}
	}
}

// answered takes a worker's answer, or the server's word that there is none.
func (w *Watch) answered(msg *nats.Msg, now time.Time) {
	var r report
	if json.Unmarshal(msg.Data, &r) != nil {
		return
	}
	name := cmp.Or(r.Details.Worker, r.Worker)
	if name == "" {
		return
	}
	r.Worker = clip(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range r.Details.Features {
		if len(f.Targets) > 0 && (len(w.first) < maxKnown || w.first[f.Name] != Target{}) {
			w.first[f.Name] = targetOf(f.Targets[0])
		}
	}
	if len(w.workers) < maxWorkers || w.workers[r.Worker] != nil {
		w.workers[r.Worker] = &worker{r, now}
	}
}

// present forgets who is gone for long, and returns all others by name and the
// live ones by when they were heard, the last first. It needs the lock.
func (w *Watch) present(now time.Time) (all, live []*worker) {
	silence := missing * w.interval
	for name, k := range w.workers {
		age := now.Sub(k.heard)
		if age > forgotten+silence && w.conn.IsConnected() {
			delete(w.workers, name)
			continue
		}
		all = append(all, k)
		if age <= silence {
			live = append(live, k)
		}
	}
	slices.SortFunc(all, func(a, b *worker) int { return strings.Compare(a.Worker, b.Worker) })
	slices.SortFunc(live, func(a, b *worker) int { return cmp.Or(b.heard.Compare(a.heard), strings.Compare(a.Worker, b.Worker)) })
	return all, live
}

func (k *worker) view(now time.Time, silence time.Duration) Worker {
	age := now.Sub(k.heard)
	v := Worker{Name: k.Worker, Version: k.Version, State: k.State, InFlight: k.Stats.InFlight, Slots: k.Stats.Slots, Requests: k.Stats.Requests,
		Busy: k.Stats.Busy, NATS: k.Details.NATS, Degraded: k.Details.Degraded, Refused: k.Details.Refused, HeardMS: age.Milliseconds()}
	if age > silence {
		v.State = Silent
	}
	return v
}

// featuresOf is what the live workers serve. Where they differ, as they may for
// a moment after a push, the one that was heard last is right.
func featuresOf(live []*worker) []Feature {
	known := map[string]bool{}
	var list []Feature
	for _, k := range live {
		for _, f := range k.Details.Features {
			if known[f.Name] {
				continue
			}
			known[f.Name] = true
			feature := Feature{Name: f.Name, Targets: []Target{}}
			for _, t := range f.Targets {
				feature.Targets = append(feature.Targets, targetOf(t))
			}
			list = append(list, feature)
		}
	}
	slices.SortFunc(list, func(a, b Feature) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// targetOf reads provider/model. A provider's name holds no slash.
func targetOf(text string) Target {
	provider, model, _ := strings.Cut(text, "/")
	return Target{Provider: provider, Model: model}
}
