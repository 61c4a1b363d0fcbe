package openai

import "github.com/llmbus/llmbus/llm"

// chatUsage is the usage of Chat Completions.
type chatUsage struct {
	Prompt          *int64           `json:"prompt_tokens"`
	Completion      *int64           `json:"completion_tokens"`
	Total           *int64           `json:"total_tokens"`
	PromptCached    *int64           `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptParts     *promptParts     `json:"prompt_tokens_details"`
	CompletionParts *completionParts `json:"completion_tokens_details"`
}

type promptParts struct {
	Cached *int64 `json:"cached_tokens"`
}

type completionParts struct {
	Reasoning *int64 `json:"reasoning_tokens"`
}

// neutral is nil where nothing is known.
func (u *chatUsage) neutral() *llm.Usage {
	if u == nil || u.Prompt == nil && u.Completion == nil && u.Total == nil {
		return nil
	}
	out := &llm.Usage{InputTokens: u.Prompt, OutputTokens: u.Completion, CachedInputTokens: u.PromptCached}
	if u.Total != nil && u.Prompt != nil && u.Completion != nil && *u.Total > *u.Prompt+*u.Completion {
		// xAI and Gemini count reasoning beside the completion; it is billed as output.
		out.OutputTokens = new(*u.Total - *u.Prompt)
	}
	if u.PromptParts != nil && u.PromptParts.Cached != nil {
		out.CachedInputTokens = u.PromptParts.Cached
	}
	if u.CompletionParts != nil {
		out.ReasoningTokens = u.CompletionParts.Reasoning
	}
	return out
}

// responsesUsage is the usage of the Responses API.
type responsesUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	InputParts *struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputParts *struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *responsesUsage) neutral() *llm.Usage {
	if u == nil || u.Input == nil && u.Output == nil {
		return nil
	}
	out := &llm.Usage{InputTokens: u.Input, OutputTokens: u.Output}
	if u.InputParts != nil {
		out.CachedInputTokens = u.InputParts.Cached
	}
	if u.OutputParts != nil {
		out.ReasoningTokens = u.OutputParts.Reasoning
	}
	return out
}
