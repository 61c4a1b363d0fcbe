package usage

import (
	"github.com/llmbus/llmbus/llm"
)

// Others is the tenant and the feature of what was counted beyond the room for
// totals of their own.
const Others = "(others)"

// Key says what a total is about.
type Key struct {
	Day      string `json:"day,omitempty"` // UTC, YYYY-MM-DD
	Tenant   string `json:"tenant,omitempty"`
	Feature  string `json:"feature,omitempty"`
	Provider string `json:"provider,omitempty"` // empty: requests that no model answered
	Model    string `json:"model,omitempty"`
}

// Totals of some requests and calls.
type Totals struct {
	Requests          int64   `json:"requests"`                      // that ended
	Failed            int64   `json:"failed,omitempty"`              // of those, with an error
	Calls             int64   `json:"calls"`                         // of providers, whatever became of them
	InputTokens       int64   `json:"input_tokens"`                  // cached ones included
	CachedInputTokens int64   `json:"cached_input_tokens,omitempty"` // part of InputTokens
	OutputTokens      int64   `json:"output_tokens"`                 // reasoning included
	ReasoningTokens   int64   `json:"reasoning_tokens,omitempty"`    // part of OutputTokens
	Estimated         int64   `json:"estimated,omitempty"`           // calls whose tokens we counted, since the provider did not
	CostUSD           float64 `json:"cost_usd"`                      // 0 where the model has no price
}

// Add adds other totals.
func (t *Totals) Add(o *Totals) {
	t.Requests += o.Requests
	t.Failed += o.Failed
	t.Calls += o.Calls
	t.InputTokens += o.InputTokens
	t.CachedInputTokens += o.CachedInputTokens
	t.OutputTokens += o.OutputTokens
	t.ReasoningTokens += o.ReasoningTokens
	t.Estimated += o.Estimated
	t.CostUSD += o.CostUSD
}

func (t *Totals) call(a *llm.Attempt) {
	t.Calls++
	t.CostUSD += a.CostUSD
	u := a.Usage
	if u == nil {
		return
	}
	for _, n := range []struct {
		sum   *int64
		count *int64
	}{
		{&t.InputTokens, u.InputTokens}, {&t.CachedInputTokens, u.CachedInputTokens},
		{&t.OutputTokens, u.OutputTokens}, {&t.ReasoningTokens, u.ReasoningTokens},
	} {
		if n.count != nil {
			*n.sum += *n.count
		}
	}
	if u.Estimated {
		t.Estimated++
	}
}
