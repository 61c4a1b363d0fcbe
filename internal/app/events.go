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
type events struct {
	conn    *nats.Conn
	worker  string
	buffers sync.Pool // of *[]byte; the client copies what it publishes
}

func newEvents(conn *nats.Conn, worker string) *events {
	return &events{conn: conn, worker: worker, buffers: sync.Pool{New: func() any { return new(make([]byte, 0, 512)) }}}
}

var _ chain.Observer = (*events)(nil)

// Observe publishes an event of a request, with the worker's name as its last
// member.
func (e *events) Observe(event chain.Event) {
	buf := e.buffers.Get().(*[]byte)
	data := event.AppendJSON((*buf)[:0])
	data = llm.AppendString(append(data[:len(data)-1], `,"worker":`...), e.worker)
	data = append(data, '}')
	_ = e.conn.Publish(subjects.Event(event.Name), data) // see publish
	*buf = data
	e.buffers.Put(buf)
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

// publish never waits. While the connection is lost the client holds messages
// back up to a bound; beyond it events are dropped, as core NATS may drop any.
func (e *events) publish(name string, event any) {
	if data, err := json.Marshal(event); err == nil {
		_ = e.conn.Publish(subjects.Event(name), data)
	}
}
