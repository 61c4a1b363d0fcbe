package vectors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Vector is one case.
type Vector struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Variant  string   `json:"variant"`
	API      string   `json:"api"`
	Stream   bool     `json:"stream"`
	Target   Target   `json:"target"`
	Now      Clock    `json:"now"`
	Timeouts Timeouts `json:"timeouts"`
	Request  Request  `json:"request"`
	Upstream Upstream `json:"upstream"`
	Expect   Expect   `json:"expect"`
	Why      string   `json:"why"`
}

// Target is what the chain entry names.
type Target struct {
	Model string `json:"model"`
}

// Clock is a fixed time; the zero Clock is the real one.
type Clock struct{ time.Time }

// Now returns the fixed time, or the real one.
func (c Clock) Now() time.Time {
	if c.IsZero() {
		return time.Now()
	}
	return c.Time
}

// Timeouts in milliseconds; 0 is the default of the case format.
type Timeouts struct {
	ConnectMS    int64 `json:"connect_ms"`
	FirstTokenMS int64 `json:"first_token_ms"`
	IdleMS       int64 `json:"idle_ms"`
	TotalMS      int64 `json:"total_ms"`
}

// Connect is the time to connect.
func (t Timeouts) Connect() time.Duration { return millis(t.ConnectMS, 1000) }

// Limits are those of provider.Timed.
func (t Timeouts) Limits() provider.Timeouts {
	return provider.Timeouts{
		FirstToken: millis(t.FirstTokenMS, 2000), Idle: millis(t.IdleMS, 1000), Total: millis(t.TotalMS, 5000),
	}
}

func millis(n, otherwise int64) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Millisecond
}

// Upstream is what the fake provider does.
type Upstream struct {
	Status  int               `json:"status"` // 0: no response byte is sent
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	BodyB64 []byte            `json:"body_b64"`
	Chunks  []Chunk           `json:"chunks"`
	Fault   string            `json:"fault"` // none, reset, stall, truncate or refuse
	Expect  *ExpectRequest    `json:"expect_request"`
}

// Chunk is one write.
type Chunk struct {
	DelayMS int64  `json:"delay_ms"`
	Data    string `json:"data"`
	DataB64 []byte `json:"data_b64"`
}

func (c *Chunk) bytes() []byte {
	if c.DataB64 != nil {
		return c.DataB64
	}
	return []byte(c.Data)
}

// Expect is what must be concluded from the one attempt.
type Expect struct {
	Class         llm.Outcome       `json:"class"`
	RetrySame     bool              `json:"retry_same"`
	FailOver      string            `json:"fail_over"`
	PolicyDefault string            `json:"policy_default"`
	TripsBreaker  bool              `json:"trips_breaker"`
	RetryAfterMS  *int64            `json:"retry_after_ms"`
	Content       *string           `json:"content"`
	FinishReason  llm.FinishReason  `json:"finish_reason"`
	Usage         map[string]*int64 `json:"usage"`
	ToolCalls     []ExpectCall      `json:"tool_calls"`
	Reasoning     *string           `json:"reasoning"`
	RequestID     *string           `json:"request_id"`
}

// ExpectCall is a tool call; an empty ID means that the provider sent none.
type ExpectCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Dir is the folder of cases to play: the one that LLMBUS_VECTORS names, so that
// other sets can be run, or else the project's own.
func Dir(own string) string { return cmp.Or(os.Getenv("LLMBUS_VECTORS"), own) }

// Load reads the cases of a folder that keep accepts, in the order of their
// names.
func Load(dir string, keep func(*Vector) bool) ([]*Vector, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Vector
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		v := new(Vector)
		if err := json.Unmarshal(data, v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if keep(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no such cases", dir)
	}
	return all, nil
}
