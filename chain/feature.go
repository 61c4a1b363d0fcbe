package chain

import (
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Feature is the policy of one feature: its targets in order of preference and
// what to do when they fail.
type Feature struct {
	Name      string
	Class     llm.Class     // of requests that name none
	DataClass string        // of requests that name none
	Timeout   time.Duration // the most that a request may take, whatever its caller asks
	Targets   []Target

	DataClasses  []string // all there are, from least to most sensitive; empty: data is not classified
	MinDataClass string   // requests of a lower class are raised to it; empty: the least sensitive
	Regions      []string // targets must process data there and nowhere else; empty: anywhere
	Audit        bool     // each decision is told to Config.Auditor

	OnRateLimit     OnRateLimit
	OnQuota         OnFailure // no credit left; FailOver by default
	OnMisconfigured OnFailure // refused credentials, unknown model; Fail by default, so that a broken key is seen
	OnRefusal       OnFailure // content filter or refusal; Fail by default
	OnInvalidOutput OnFailure // empty, or not what was asked for; FailOver by default
	OnInterrupt     OnInterrupt
	Commit          Commit
	Repair          Repair
	Jobs            Jobs
	Fallback        []llm.FallbackMode // tried in order; empty is none
	StaticText      string             // of llm.FallbackStatic
}

// Target is one model behind one provider.
type Target struct {
	Provider  string
	Model     string
	Completer llm.Completer    // the adapter
	Breaker   *breaker.Breaker // shared by every target of the same key
	Can       provider.Capabilities
	Attempts  int           // calls on the wire for one request, at most; 1 or more
	Timeout   time.Duration // for one call; 0 is a fair share of what remains. The last target gets all that remains
	Limits    provider.Timeouts
	Price     Price
}

// OnFailure says whether another target is asked.
type OnFailure string

const (
	FailOver OnFailure = "fail_over"
	Fail     OnFailure = "fail"
)

// OnRateLimit says what a provider's 429 leads to.
type OnRateLimit string

const (
	RateLimitFailOver OnRateLimit = "fail_over" // ask the next target
	RateLimitWait     OnRateLimit = "wait"      // wait if that fits the deadline, else ask the next target
	RateLimitFail     OnRateLimit = "fail"
)

// OnInterrupt says what happens when a stream breaks after the caller saw text.
type OnInterrupt string

const (
	InterruptError   OnInterrupt = "error"   // tell the caller; it keeps the partial text
	InterruptRestart OnInterrupt = "restart" // begin again on another target; the caller discards what it has
	InterruptQueue   OnInterrupt = "queue"   // tell the caller, and have a job make the answer anew
)

// Jobs is what differs for background jobs of a feature.
type Jobs struct {
	Timeout time.Duration   // the most that one try may take, instead of Feature.Timeout; 0 is the same
	Backoff []time.Duration // the waits between tries, of which there is one more
}

// Commit delays the first visible frame of a stream, so that a provider that
// fails early can still be replaced. The text is released when either bound is
// reached; both zero releases it at once.
type Commit struct {
	Characters int
	After      time.Duration // since the first piece; looked at when a piece arrives
}

// Repair says what may be mended in a structured answer before it is judged.
type Repair string

const (
	RepairNone  Repair = "none"
	RepairFence Repair = "fence" // strip one Markdown fence around the whole text
)

// Price of a model in US dollars per million tokens.
type Price struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cached_input,omitempty"` // 0 means the price of Input
	Output      float64 `json:"output"`
}
