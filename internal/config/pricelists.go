package config

import "github.com/llmbus/llmbus/chain"

// priceLists are the standard prices of common models in US dollars per million
// tokens: input, cached input (0: as input), output. They were taken from public
// collections of the pages named here, of the day named here. They leave out
// surcharges for long prompts and regions, writes to a cache, and discounts of
// batches. A list that is changed gets a new day; see docs/configuration.md.
var priceLists = []priceList{
	{
		host: "api.openai.com", taken: "2026-10-09", source: "https://developers.openai.com/api/docs/pricing",
		prices: []shippedPrice{
			{"gpt-6-astra", chain.Price{Input: 10, CachedInput: 1, Output: 50}},
			{"gpt-6-sol", chain.Price{Input: 2, CachedInput: 0.2, Output: 10}},
			{"gpt-6-luna", chain.Price{Input: 0.1, CachedInput: 0.01, Output: 0.5}},
			{"gpt-5.6-sol", chain.Price{Input: 4, CachedInput: 0.4, Output: 20}},
			{"gpt-5.6-terra", chain.Price{Input: 2, CachedInput: 0.2, Output: 12}},
			{"gpt-5.6-luna", chain.Price{Input: 0.2, CachedInput: 0.02, Output: 1.2}},
			{"gpt-5.5", chain.Price{Input: 5, CachedInput: 0.5, Output: 30}},
			{"gpt-5.4", chain.Price{Input: 2.5, CachedInput: 0.25, Output: 15}},
			{"gpt-5.4-mini", chain.Price{Input: 0.75, CachedInput: 0.075, Output: 4.5}},
			{"gpt-5.4-nano", chain.Price{Input: 0.2, CachedInput: 0.02, Output: 1.25}},
			{"gpt-5.2", chain.Price{Input: 1.75, CachedInput: 0.175, Output: 14}},
			{"gpt-5.1", chain.Price{Input: 1.25, CachedInput: 0.125, Output: 10}},
			{"gpt-5", chain.Price{Input: 1.25, CachedInput: 0.125, Output: 10}},
			{"gpt-5-pro", chain.Price{Input: 15, Output: 120}},
			{"gpt-5-mini", chain.Price{Input: 0.25, CachedInput: 0.025, Output: 2}},
			{"gpt-5-nano", chain.Price{Input: 0.05, CachedInput: 0.005, Output: 0.4}},
			{"gpt-4.1", chain.Price{Input: 2, CachedInput: 0.5, Output: 8}},
			{"gpt-4.1-mini", chain.Price{Input: 0.4, CachedInput: 0.1, Output: 1.6}},
			{"gpt-4.1-nano", chain.Price{Input: 0.1, CachedInput: 0.025, Output: 0.4}},
			{"gpt-4o", chain.Price{Input: 2.5, CachedInput: 1.25, Output: 10}},
			{"gpt-4o-2024-05-13", chain.Price{Input: 5, Output: 15}},
			{"gpt-4o-mini", chain.Price{Input: 0.15, CachedInput: 0.075, Output: 0.6}},
			{"o3", chain.Price{Input: 2, CachedInput: 0.5, Output: 8}},
			{"o3-mini", chain.Price{Input: 1.1, CachedInput: 0.55, Output: 4.4}},
			{"o4-mini", chain.Price{Input: 1.1, CachedInput: 0.275, Output: 4.4}},
		},
	},
	{
		host: "api.anthropic.com", taken: "2026-10-09", source: "https://platform.claude.com/docs/en/about-claude/pricing",
		prices: []shippedPrice{
			{"claude-opus-5-5", chain.Price{Input: 4, CachedInput: 0.2, Output: 20}},
			{"claude-opus-5", chain.Price{Input: 5, CachedInput: 0.5, Output: 25}},
			{"claude-opus-4-8", chain.Price{Input: 5, CachedInput: 0.5, Output: 25}},
			{"claude-opus-4-7", chain.Price{Input: 5, CachedInput: 0.5, Output: 25}},
			{"claude-opus-4-6", chain.Price{Input: 5, CachedInput: 0.5, Output: 25}},
			{"claude-opus-4-5", chain.Price{Input: 5, CachedInput: 0.5, Output: 25}},
			{"claude-sonnet-5", chain.Price{Input: 2, CachedInput: 0.2, Output: 10}},
			{"claude-sonnet-4-6", chain.Price{Input: 3, CachedInput: 0.3, Output: 15}},
			{"claude-sonnet-4-5", chain.Price{Input: 3, CachedInput: 0.3, Output: 15}},
			{"claude-haiku-4-5", chain.Price{Input: 1, CachedInput: 0.1, Output: 5}},
		},
	},
	{
		host: "generativelanguage.googleapis.com", taken: "2026-10-09", source: "https://ai.google.dev/gemini-api/docs/pricing",
		prices: []shippedPrice{
			{"gemini-3.5-flash", chain.Price{Input: 1.5, CachedInput: 0.15, Output: 9}},
			{"gemini-3.5-flash-lite", chain.Price{Input: 0.3, CachedInput: 0.03, Output: 2.5}},
			{"gemini-3.1-pro-preview", chain.Price{Input: 2, CachedInput: 0.2, Output: 12}},
			{"gemini-3.1-flash-lite", chain.Price{Input: 0.25, CachedInput: 0.025, Output: 1.5}},
			{"gemini-3-flash-preview", chain.Price{Input: 0.5, CachedInput: 0.05, Output: 3}},
			{"gemini-2.5-pro", chain.Price{Input: 1.25, CachedInput: 0.125, Output: 10}},
			{"gemini-2.5-flash", chain.Price{Input: 0.3, CachedInput: 0.03, Output: 2.5}},
			{"gemini-2.5-flash-lite", chain.Price{Input: 0.1, CachedInput: 0.01, Output: 0.4}},
		},
	},
	{
		host: "api.mistral.ai", taken: "2026-10-09", source: "https://mistral.ai/pricing",
		prices: []shippedPrice{
			{"mistral-large-2512", chain.Price{Input: 0.5, CachedInput: 0.05, Output: 1.5}},
			{"mistral-medium-2604", chain.Price{Input: 1.5, CachedInput: 0.15, Output: 7.5}},
			{"mistral-medium-2508", chain.Price{Input: 0.4, CachedInput: 0.04, Output: 2}},
			{"mistral-small-2603", chain.Price{Input: 0.15, CachedInput: 0.015, Output: 0.6}},
			{"mistral-small-2506", chain.Price{Input: 0.1, CachedInput: 0.01, Output: 0.3}},
			{"devstral-2512", chain.Price{Input: 0.4, CachedInput: 0.04, Output: 2}},
			{"open-mistral-nemo", chain.Price{Input: 0.15, CachedInput: 0.015, Output: 0.15}},
		},
	},
}
