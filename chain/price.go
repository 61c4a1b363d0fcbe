package chain

import (
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// bytesPerToken is the usual rule of thumb for English text; it is used only
// where a provider sends no usage, and the count is marked as estimated.
const bytesPerToken = 4

// book completes the record of one call: how it ended, its tokens, its price.
func book(a *llm.Attempt, t *Target, resp *llm.Response, f *provider.Failure) {
	a.Class = llm.OutcomeOK
	if f != nil {
		a.Class, a.HTTPStatus = f.Outcome, f.Status
		if believable(f.Usage) {
			a.Usage = f.Usage
		}
	} else {
		if shows(resp, resp.ModelVersion) {
			resp.ModelVersion = "" // it goes into logs and metrics
		}
		a.HTTPStatus, a.Usage, a.ModelVersion = 200, resp.Usage, resp.ModelVersion
	}
	a.CostUSD = t.Price.of(a.Usage)
}

// mostTokens is more than any call can take or give. A larger count is a fault of
// the provider, and would use up its tenant's limits or overflow them.
const mostTokens = 100_000_000

// believable reports whether there is a usage and its counts can be true.
func believable(u *llm.Usage) bool {
	if u == nil {
		return false
	}
	for _, n := range []*int64{u.InputTokens, u.OutputTokens, u.CachedInputTokens, u.CacheWriteTokens, u.ReasoningTokens} {
		if n != nil && (*n < 0 || *n > mostTokens) {
			return false
		}
	}
	return true
}

// of is the price of some usage. Unknown counts cost nothing that we could name.
func (p Price) of(u *llm.Usage) float64 {
	if u == nil {
		return 0
	}
	cached := value(u.CachedInputTokens)
	cachedPrice := p.CachedInput
	if cachedPrice == 0 {
		cachedPrice = p.Input
	}
	fresh := max(0, value(u.InputTokens)-cached)
	return (float64(fresh)*p.Input + float64(cached)*cachedPrice + float64(value(u.OutputTokens))*p.Output) / 1e6
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// estimate counts the tokens of a request and of so many bytes of its answer,
// for providers that sent no usage and for answers that were cut.
func estimate(req *llm.Request, answer int) *llm.Usage {
	var in int
	for i := range req.Messages {
		for _, p := range req.Messages[i].Content {
			in += len(p.Text)
		}
	}
	return &llm.Usage{InputTokens: new(tokens(in)), OutputTokens: new(tokens(answer)), Estimated: true}
}

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }
