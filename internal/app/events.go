package app

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Names of the events that no request causes.
const (
	eventCircuitOpened   = "circuit_opened"
	eventCircuitHalfOpen = "circuit_half_open"
	eventCircuitClosed   = "circuit_closed"
	eventFlipped         = "kill_switch_flipped"
)

// events tells whoever listens on llm.events.> what happens. Events are core
// NATS messages: who does not listen misses them.
//
// Those of requests wait a moment for each other. There are two of each request,
// and every one that travels alone wakes the client's writer and the server.
type events struct {
	conn   *nats.Conn
	worker string

	mu      sync.Mutex
	waiting []waitingEvent
	data    []byte      // of those that wait
	timer   *time.Timer // runs while any waits
}

// waitingEvent is the part of the data before end, from where the one before it ends.
type waitingEvent struct {
	name string
	end  int
}

const (
	eventsWait = 5 * time.Millisecond
	mostEvents = 64 // that wait
)

func newEvents(conn *nats.Conn, worker string) *events {
	e := &events{conn: conn, worker: worker}
	e.timer = time.AfterFunc(eventsWait, e.flush) // once for nothing
	return e
}

var _ chain.Observer = (*events)(nil)

// Observe publishes an event of a request soon, with the worker's name as its last
// member.
func (e *events) Observe(event chain.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.timer.Reset(eventsWait)
	}
	e.data = event.AppendJSON(e.data)
	e.data = llm.AppendString(append(e.data[:len(e.data)-1], `,"worker":`...), e.worker)
	e.data = append(e.data, '}')
	if e.waiting = append(e.waiting, waitingEvent{event.Name, len(e.data)}); len(e.waiting) >= mostEvents {
		e.send()
	}
}

// flush publishes what waits.
func (e *events) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.send()
}

// send is called with mu held. A timer that still runs sends some events a little
// sooner.
func (e *events) send() {
	begin := 0
	for _, w := range e.waiting {
		_ = e.conn.Publish(subjects.Event(w.name), e.data[begin:w.end]) // see publish; the client copies it
		begin = w.end
	}
	e.waiting, e.data = e.waiting[:0], e.data[:0]
}

// circuit publishes a transition, at the one worker that made it.
func (e *events) circuit(c breaker.Change) {
	name := circuitEvents[c.To]
	if name == "" || c.From == breaker.Cooling || !c.Mine {
		return
	}
	provider, model, _ := subjects.ParseBreakerKey(c.Key)
	e.publish(name, circuitEvent{Event: name, Time: time.Now(), Worker: e.worker, Key: c.Key, Provider: provider, Model: model,
		From: c.From, Why: c.Why, Generation: c.Generation, CoolDownMS: c.CoolDown.Milliseconds()})
}

var circuitEvents = map[breaker.State]string{
	breaker.Open: eventCircuitOpened, breaker.HalfOpen: eventCircuitHalfOpen, breaker.Closed: eventCircuitClosed,
}

// circuitEvent is one transition of a breaker.
type circuitEvent struct {
	Event      string        `json:"event"`
	Time       time.Time     `json:"time"` // this worker's clock, for people
	Worker     string        `json:"worker"`
	Key        string        `json:"breaker"`
	Provider   string        `json:"provider"`
	Model      string        `json:"model,omitempty"`
	From       breaker.State `json:"from"`
	Why        string        `json:"why,omitempty"`
	Generation uint64        `json:"generation"`
	CoolDownMS int64         `json:"cool_down_ms,omitempty"` // of circuit_opened: until the first probe
}

// flips publishes switches. Every worker does, as it obeys: their number and
// their time show how far a flip has come.
func (e *events) flips(flips []kv.Flip) {
	for _, f := range flips {
		e.publish(eventFlipped, flipEvent{Event: eventFlipped, Time: time.Now(), Worker: e.worker, Key: f.New.Key, Revision: f.New.Revision,
			On: f.New.On, Now: f.New.Now, By: f.New.By, Reason: f.New.Reason})
	}
}

// flipEvent is one switch, obeyed by one worker from now on.
type flipEvent struct {
	Event    string    `json:"event"`
	Time     time.Time `json:"time"` // this worker's clock, for people
	Worker   string    `json:"worker"`
	Key      string    `json:"flag"`
	Revision uint64    `json:"revision,omitempty"` // the same at every worker; absent when the flag was cleared
	On       bool      `json:"on"`
	Now      bool      `json:"now,omitempty"` // what was in flight was stopped
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// publish sends an event at once, after all that wait. While the connection is
// lost the client holds messages back up to a bound; beyond it events are
// dropped, as core NATS may drop any.
func (e *events) publish(name string, event any) {
	e.flush()
	if data, err := json.Marshal(event); err == nil {
		_ = e.conn.Publish(subjects.Event(name), data)
	}
}
