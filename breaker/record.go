package breaker

import (
	"encoding/json"
	"fmt"
	"time"
)

// Record is the value of a breaker in the llm_breakers bucket. It holds no
// instant that a reader must trust: times are relative to when the server
// stored the value. People may write one by hand; state alone is enough.
type Record struct {
	State      State     `json:"state"`
	Why        string    `json:"why,omitempty"`
	Since      time.Time `json:"since,omitzero"`         // by the writer's clock, for people only
	Generation uint64    `json:"generation"`             // transitions so far
	CoolDownMS int64     `json:"cool_down_ms,omitempty"` // of this open phase or, closed, of the last; cooling: the whole wait
	WaitMS     int64     `json:"wait_ms,omitempty"`      // half_open: the lease; else the wait left, where it is not cool_down_ms
	Failures   int       `json:"failures,omitempty"`     // in the window when it opened
	By         string    `json:"by,omitempty"`           // the worker that wrote it
}

// maxText bounds the free text of a record that is taken over.
const maxText = 200

// DecodeRecord reads a value of the llm_breakers bucket. Unknown fields are
// ignored. The error holds nothing of the value but its state.
func DecodeRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("value of a breaker is not the JSON of a record")
	}
	switch r.State {
	case Closed, Open, HalfOpen, Cooling:
	default:
		return Record{}, fmt.Errorf("state: must be closed, open, half_open or cooling, not %.20q", string(r.State))
	}
	if r.CoolDownMS < 0 || r.WaitMS < 0 {
		return Record{}, fmt.Errorf("cool_down_ms and wait_ms: must not be negative")
	}
	r.CoolDownMS = min(r.CoolDownMS, longestWait.Milliseconds())
	r.WaitMS = min(r.WaitMS, longestWait.Milliseconds())
	r.Why, r.By = clip(r.Why), clip(r.By)
	return r, nil
}

func (r Record) coolDown() time.Duration { return time.Duration(r.CoolDownMS) * time.Millisecond }
func (r Record) wait() time.Duration     { return time.Duration(r.WaitMS) * time.Millisecond }

func clip(s string) string { return s[:min(len(s), maxText)] }
