package fleet

import (
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
)

// View is the fleet at one instant. Lists are never nil, so that their JSON is
// always an array.
type View struct {
	At       time.Time `json:"at"` // by the clock of who watches
	NATS     NATS      `json:"nats"`
	Stale    []Part    `json:"stale"` // parts that may be out of date
	Features []Feature `json:"features"`
	Breakers []Breaker `json:"breakers"`
	Switches []Switch  `json:"switches"`   // all that are set, on or off
	Keys     []string  `json:"switchable"` // flags of all that there is to switch off
	Workers  []Worker  `json:"workers"`
	Traffic  Traffic   `json:"traffic"`
	Cost     Cost      `json:"cost"`
	Jobs     Jobs      `json:"jobs"`
	Events   []Event   `json:"events"` // the last ones of note, the newest first
}

// Part is what may be out of date by itself.
type Part string

// The parts of a View.
const (
	PartNATS     Part = "nats"     // there is no connection: everything is old
	PartWorkers  Part = "workers"  // nobody answers on llm.status; with it features
	PartBreakers Part = "breakers" // the bucket cannot be followed
	PartSwitches Part = "switches" // likewise
	PartEvents   Part = "events"   // they may not be heard: traffic stands still
	PartJobs     Part = "jobs"     // the streams cannot be read
)

// NATS is the connection of who watches.
type NATS struct {
	Connected bool   `json:"connected"`
	Server    string `json:"server,omitempty"` // without credentials
}

// Feature is one feature in force.
type Feature struct {
	Name     string   `json:"name"`
	Targets  []Target `json:"targets"`             // in order of preference
	Off      bool     `json:"off,omitempty"`       // by its own switch or that of everything
	PerSec   float64  `json:"requests_per_second"` // that ended, over the last 10 s
	Requests int64    `json:"requests"`            // that ended, over the last minute
	Failed   int64    `json:"failed"`              // of these
	Rescued  int64    `json:"failovers"`           // of these, answered by another target than the first, which failed or was skipped
	P95MS    *int64   `json:"p95_ms"`              // whole answers; null: none
}

// Target is one step of a chain.
type Target struct {
	Provider string        `json:"provider"`
	Model    string        `json:"model"`
	State    breaker.State `json:"state"`         // of its breaker
	Off      bool          `json:"off,omitempty"` // by a switch of the provider or model
}

// Breaker is one breaker and who agrees.
type Breaker struct {
	Key        string        `json:"key"`
	Provider   string        `json:"provider"`
	Model      string        `json:"model,omitempty"` // empty: all models of the provider
	State      breaker.State `json:"state"`
	Why        string        `json:"why,omitempty"`
	ForMS      int64         `json:"for_ms"`   // in this state
	RetryMS    int64         `json:"retry_ms"` // until a call may be admitted; open: the next probe
	Failures   int           `json:"failures"` // that count in the window now
	Generation uint64        `json:"generation"`
	By         string        `json:"by,omitempty"` // who made the transition
	Workers    int           `json:"workers"`      // that see it so
	Of         int           `json:"of"`           // that know it
}

// Switch is one flag that is set.
type Switch struct {
	Key          string    `json:"flag"`
	On           bool      `json:"on"`
	Now          bool      `json:"now,omitempty"`
	By           string    `json:"by,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Unrecognised bool      `json:"unrecognised,omitempty"` // the value is none of the words and counts as off
	Set          time.Time `json:"set"`                    // by the server's clock
	Revision     uint64    `json:"revision"`
}

// Silent is the state of a worker that no longer answers. The others are those
// of the worker itself.
const Silent = "silent"

// Worker is one worker.
type Worker struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	State    string   `json:"state"`
	InFlight int      `json:"in_flight"`
	Slots    int      `json:"slots"`
	Requests int64    `json:"requests"` // taken since it started
	Busy     int64    `json:"busy"`     // of these, refused since all slots were taken
	NATS     string   `json:"nats"`     // the server it is connected to
	Degraded bool     `json:"degraded,omitempty"`
	Refused  []string `json:"refused,omitempty"` // parts of the configuration that it could not take
	HeardMS  int64    `json:"heard_ms"`          // since its last answer
}

// Traffic is what the events of requests say, since the watch began.
type Traffic struct {
	WatchedMS  int64    `json:"watched_ms"`          // for how long events have been heard
	PerSec     float64  `json:"requests_per_second"` // that ended, over the last 10 s
	Requests   int64    `json:"requests"`            // that ended, over the last minute, as below
	Failed     int64    `json:"failed"`
	Rescued    int64    `json:"failovers"`   // answered by another target than the feature's first
	FirstToken Latency  `json:"first_token"` // of streams
	Total      Latency  `json:"total"`       // of answers
	Missed     int64    `json:"missed"`      // events that were not counted, since the watch began
	Series     []Second `json:"series"`      // whole seconds, the oldest first, 120 at most
}

// Latency is where the middle and the slow end of measured times are, in ms, to
// within an eighth. Without any, all are null.
type Latency struct {
	P50 *int64 `json:"p50_ms"`
	P95 *int64 `json:"p95_ms"`
	P99 *int64 `json:"p99_ms"`
}

// Second is one second of traffic.
type Second struct {
	Ended      int64  `json:"n"`
	Failed     int64  `json:"failed"`
	Rescued    int64  `json:"failovers"`
	FirstToken *int64 `json:"first_token_p95_ms"`
	Median     *int64 `json:"total_p50_ms"`
	Total      *int64 `json:"total_p95_ms"`
}

// Cost is what today's requests cost, in US dollars. It is read from the bucket
// of totals; where that cannot be read, it is added up from events.
type Cost struct {
	TodayUSD float64   `json:"today_usd"`
	Since    time.Time `json:"since"`   // midnight UTC; of events, when the watch began if that was later
	Counted  bool      `json:"counted"` // the workers' own totals, so that nothing is missing
}

// Jobs are background requests. Without JetStream all are null.
type Jobs struct {
	Waiting  *uint64 `json:"waiting"`   // in the queue: not taken, in hand or put off
	OldestMS *int64  `json:"oldest_ms"` // age of the oldest; null: none waits
	Dead     *uint64 `json:"dead"`      // given up
}

// Event is one message of llm.events.>, of whichever kind. Texts are cut at
// 200 bytes.
type Event struct {
	Name         string        `json:"event"`
	Time         time.Time     `json:"time"` // the worker's clock
	Worker       string        `json:"worker,omitempty"`
	RequestID    string        `json:"request_id,omitempty"`
	Feature      string        `json:"feature,omitempty"`
	Tenant       string        `json:"tenant,omitempty"` // hashed
	Provider     string        `json:"provider,omitempty"`
	Model        string        `json:"model,omitempty"`
	Class        llm.Outcome   `json:"class,omitempty"`
	Code         llm.Code      `json:"code,omitempty"`
	Limit        string        `json:"limit,omitempty"` // of limit_exceeded: its name
	Attempts     int           `json:"attempts,omitempty"`
	MS           int64         `json:"ms,omitempty"`
	FirstTokenMS int64         `json:"first_token_ms,omitempty"`
	CostUSD      float64       `json:"cost_usd,omitempty"`
	Breaker      string        `json:"breaker,omitempty"`
	From         breaker.State `json:"from,omitempty"`
	Why          string        `json:"why,omitempty"`
	Generation   uint64        `json:"generation,omitempty"`
	CoolDownMS   int64         `json:"cool_down_ms,omitempty"`
	Flag         string        `json:"flag,omitempty"`
	Revision     uint64        `json:"revision,omitempty"`
	On           *bool         `json:"on,omitempty"`
	Now          bool          `json:"now,omitempty"`
	By           string        `json:"by,omitempty"`
	Reason       string        `json:"reason,omitempty"`
	Workers      int           `json:"workers,omitempty"` // of a switch in a View: how many have obeyed
	Times        int           `json:"times,omitempty"`   // of a request in a View: how many were alike, of which this is the last
}
