package gateway

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/llmbus/llmbus/llm"
)

// idPrefix begins the ids of answers, as callers know them.
const idPrefix = "chatcmpl-"

// appendHead appends what every object of an answer begins with.
func appendHead(dst []byte, id, object, model string, created int64) []byte {
	dst = append(dst, `{"id":`...)
	dst = llm.AppendString(dst, idPrefix+id)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, created, 10)
	dst = append(dst, `,"model":`...)
	return llm.AppendString(dst, model)
}

// appendCompletion appends a whole answer.
func appendCompletion(dst []byte, req *llm.Request, resp *llm.Response, created int64) ([]byte, error) {
	dst = appendHead(dst, req.ID, "chat.completion", cmp.Or(resp.Model, req.Feature), created)
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if resp.Content == "" && len(resp.ToolCalls) > 0 {
		dst = append(dst, "null"...)
	} else {
		dst = llm.AppendString(dst, resp.Content)
	}
	dst = append(dst, `,"refusal":null`...)
	if len(resp.ToolCalls) > 0 {
		calls, err := json.Marshal(resp.ToolCalls)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"tool_calls":`...), calls...)
	}
	dst = append(dst, `},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, finish(resp)...)
	dst = append(dst, `"}],"usage":`...)
	dst = appendUsage(dst, resp.Usage)
	dst = append(dst, `,"llmbus":`...)
	dst, err := appendExtra(dst, resp)
	return append(dst, '}'), err
}

// finish is the reason in the words of the API, which has none for "the provider
// did not say".
func finish(resp *llm.Response) string {
	switch resp.FinishReason {
	case llm.FinishLength, llm.FinishToolCalls, llm.FinishContentFilter:
		return string(resp.FinishReason)
	}
	if len(resp.ToolCalls) > 0 {
		return string(llm.FinishToolCalls)
	}
	return string(llm.FinishStop)
}

// appendUsage appends the tokens, or null where nobody counted them.
func appendUsage(dst []byte, u *llm.Usage) []byte {
	if u == nil || u.InputTokens == nil && u.OutputTokens == nil {
		return append(dst, "null"...)
	}
	in, out := count(u.InputTokens), count(u.OutputTokens)
	for _, part := range []struct {
		name string
		n    int64
	}{
		{`{"prompt_tokens":`, in}, {`,"completion_tokens":`, out}, {`,"total_tokens":`, in + out},
		{`,"prompt_tokens_details":{"cached_tokens":`, count(u.CachedInputTokens)},
		{`},"completion_tokens_details":{"reasoning_tokens":`, count(u.ReasoningTokens)},
	} {
		dst = strconv.AppendInt(append(dst, part.name...), part.n, 10)
	}
	return append(dst, "}}"...)
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// extra is what the API has no member for. Clients pass over what they do not
// know.
type extra struct {
	ServedBy llm.ServedBy     `json:"served_by"`
	Provider string           `json:"provider,omitempty"`
	Model    string           `json:"model,omitempty"`
	Fallback llm.FallbackMode `json:"fallback,omitempty"`
	Stale    bool             `json:"stale,omitempty"`
	Replayed bool             `json:"replayed,omitempty"`
	Degraded bool             `json:"degraded,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	CostUSD  float64          `json:"cost_usd,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
}

func appendExtra(dst []byte, resp *llm.Response) ([]byte, error) {
	text, err := json.Marshal(extra{resp.ServedBy, resp.Provider, resp.Model, resp.Fallback, resp.Stale, resp.Replayed, resp.Degraded,
		len(resp.Attempts), resp.CostUSD, resp.Warnings})
	return append(dst, text...), err
}
