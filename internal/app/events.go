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
	conn    *nats.Conn
	worker  string
	buffers sync.Pool // of *[]byte, for one event each

	sending sync.Mutex // is held while a batch is published, so that batches keep their order
	sent    batch      // has been published; its memory is for the next

	mu      sync.Mutex
	waiting batch
	timer   *time.Timer // runs while any waits
}

// batch is some events, one after another.
type batch struct {
	names []string
	ends  []int // of each, in data
	data  []byte
}

const (
	eventsWait = 5 * time.Millisecond
	manyEvents = 64   // do not wait any longer
	mostEvents = 4096 // wait while the connection takes none; more are dropped
)

func newEvents(conn *nats.Conn, worker string) *events {
	e := &events{conn: conn, worker: worker, buffers: sync.Pool{New: func() any { return new(make([]byte, 0, 512)) }}}
	e.timer = time.AfterFunc(eventsWait, e.flush) // once for nothing
	return e
}

var _ chain.Observer = (*events)(nil)

// Observe publishes an event of a request soon, with the worker's name as its last
// member. The request does not wait for the connection.
func (e *events) Observe(event chain.Event) {
	buf := e.buffers.Get().(*[]byte)
	defer e.buffers.Put(buf)
	data := event.AppendJSON((*buf)[:0])
	data = llm.AppendString(append(data[:len(data)-1], `,"worker":`...), e.worker)
	*buf = append(data, '}')

	e.mu.Lock()
	defer e.mu.Unlock()
	w := &e.waiting
	if len(w.names) == mostEvents {
		return
	}
	w.data = append(w.data, *buf...)
	w.names, w.ends = append(w.names, event.Name), append(w.ends, len(w.data))
	switch len(w.names) {
	case 1:
		e.timer.Reset(eventsWait)
	case manyEvents:
		e.timer.Reset(0)
	}
}

// flush publishes what waits.
func (e *events) flush() {
	e.sending.Lock()
	defer e.sending.Unlock()
	e.mu.Lock()
	e.waiting, e.sent = e.sent, e.waiting
	e.mu.Unlock()
	begin := 0
	for i, name := range e.sent.names {
		_ = e.conn.Publish(subjects.Event(name), e.sent.data[begin:e.sent.ends[i]]) // see publish; the client copies it
		begin = e.sent.ends[i]
	}
	e.sent = batch{e.sent.names[:0], e.sent.ends[:0], e.sent.data[:0]}
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
