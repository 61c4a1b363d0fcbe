package gemini

import (
	"cmp"
	"encoding/json"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// answer is a whole answer, or a piece of a streamed one.
type answer struct {
	Candidates []struct {
		Content struct {
			Parts []answerPart `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage        *usage          `json:"usageMetadata"`
	ModelVersion string          `json:"modelVersion"`
	ResponseID   string          `json:"responseId"`
	Error        json.RawMessage `json:"error"`
}

type answerPart struct {
	Text         string `json:"text"`
	Thought      bool   `json:"thought"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage counts tokens. Candidates leaves out thoughts; both are output. Counts
// of zero are left out by the API.
type usage struct {
	Prompt     *int64 `json:"promptTokenCount"`
	ToolPrompt *int64 `json:"toolUsePromptTokenCount"`
	Cached     *int64 `json:"cachedContentTokenCount"`
	Candidates *int64 `json:"candidatesTokenCount"`
	Thoughts   *int64 `json:"thoughtsTokenCount"`
}

// update takes over what a later piece knows: its counts are totals.
func (u *usage) update(later *usage) {
	u.Prompt = cmp.Or(later.Prompt, u.Prompt)
	u.ToolPrompt = cmp.Or(later.ToolPrompt, u.ToolPrompt)
	u.Cached = cmp.Or(later.Cached, u.Cached)
	u.Candidates = cmp.Or(later.Candidates, u.Candidates)
	u.Thoughts = cmp.Or(later.Thoughts, u.Thoughts)
}

func (u *usage) neutral() *llm.Usage {
	if u == nil {
		return nil
	}
	n := &llm.Usage{
		OutputTokens:      new(value(u.Candidates) + value(u.Thoughts)),
		CachedInputTokens: u.Cached, ReasoningTokens: u.Thoughts,
	}
	if u.Prompt != nil {
		n.InputTokens = new(*u.Prompt + value(u.ToolPrompt))
	}
	return n
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// verdict is what a finish reason means.
type verdict struct {
	outcome llm.Outcome
	detail  provider.Detail
	finish  llm.FinishReason
}

func finish(reason string) verdict {
	switch reason {
	case "":
		return verdict{outcome: llm.OutcomeOK, finish: llm.FinishUnknown}
	case "STOP":
		return verdict{outcome: llm.OutcomeOK, finish: llm.FinishStop}
	case "MAX_TOKENS":
		return verdict{outcome: llm.OutcomeOK, finish: llm.FinishLength}
	case "SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "MODEL_ARMOR":
		return verdict{outcome: llm.OutcomeContentFiltered}
	case "RECITATION", "IMAGE_RECITATION":
		return verdict{outcome: llm.OutcomeContentFiltered, detail: provider.DetailRecitation}
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		return verdict{outcome: llm.OutcomeInvalidOutput}
	}
	return verdict{outcome: llm.OutcomeOK, finish: llm.FinishOther}
}

// known returns a reason that is documented: any other could be anything, and
// it goes into logs.
func known(reason string) string {
	switch reason {
	case "OTHER", "LANGUAGE", "NO_IMAGE", "IMAGE_OTHER", "MISSING_THOUGHT_SIGNATURE", "JAILBREAK", "BLOCKED_REASON_UNSPECIFIED", "FINISH_REASON_UNSPECIFIED":
		return reason
	}
	if finish(reason).finish == llm.FinishOther {
		return ""
	}
	return reason
}
