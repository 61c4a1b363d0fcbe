package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/config"
)

// provided reads one provider with the given settings.
func provided(t *testing.T, settings string) *config.Provider {
	t.Helper()
	cfg, _, err := config.Parse("f.yaml", []byte("providers: {p: "+settings+"}\nfeatures: {default: {targets: [{provider: p, model: m}]}}\n"))
	require.NoError(t, err)
	return cfg.Provider("p")
}

func TestShippedPricesHoldForTheirOwnServiceAlone(t *testing.T) {
	mini := chain.Price{Input: 0.25, CachedInput: 0.025, Output: 2}
	for _, c := range []struct {
		name, settings, model string
		want                  chain.Price
	}{
		{"by default", "{kind: openai}", "gpt-5-mini", mini},
		{"written out", "{kind: openai, base_url: \"https://api.openai.com/v1\"}", "gpt-5-mini", mini},
		{"a snapshot", "{kind: openai}", "gpt-5-mini-2025-08-07", mini},
		{"a snapshot with a price of its own", "{kind: openai}", "gpt-4o-2024-05-13", chain.Price{Input: 5, Output: 15}},
		{"a snapshot of anthropic", "{kind: anthropic}", "claude-haiku-4-5-20251001", chain.Price{Input: 1, CachedInput: 0.1, Output: 5}},
		{"gemini", "{kind: gemini}", "gemini-2.5-flash", chain.Price{Input: 0.3, CachedInput: 0.03, Output: 2.5}},
		{"mistral", "{kind: openai, family: mistral, base_url: \"https://api.mistral.ai\"}", "mistral-large-2512", chain.Price{Input: 0.5, CachedInput: 0.05, Output: 1.5}},
		{"an alias that moves", "{kind: openai, family: mistral, base_url: \"https://api.mistral.ai\"}", "mistral-large-latest", chain.Price{}},
		{"an unknown model", "{kind: openai}", "gpt-5-mini-x", chain.Price{}},
		{"a reseller", "{kind: openai, base_url: \"https://openrouter.ai/api\"}", "gpt-5-mini", chain.Price{}},
		{"a local server", "{kind: openai, base_url: \"http://127.0.0.1:8000\"}", "gpt-5-mini", chain.Price{}},
		{"a tunnel", "{kind: openai, base_url: \"https://api.openai.com:8443\"}", "gpt-5-mini", chain.Price{}},
		{"a host that ends alike", "{kind: openai, base_url: \"https://eu.api.openai.com\"}", "gpt-5-mini", chain.Price{}},
		{"azure", "{kind: openai, azure: {}, base_url: \"https://x.openai.azure.com\"}", "gpt-5-mini", chain.Price{}},
		{"another kind", "{kind: anthropic}", "gpt-5-mini", chain.Price{}},
		{"ollama", "{kind: ollama}", "gpt-5-mini", chain.Price{}},
		{"echo", "{kind: echo}", "gpt-5-mini", chain.Price{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			price, from := provided(t, c.settings).Price(c.model)
			require.Equal(t, c.want, price)
			require.Equal(t, c.want != chain.Price{}, from.Taken != "")
		})
	}
}

func TestDeclaredPriceWins(t *testing.T) {
	p := provided(t, "{kind: openai, models: {gpt-5: {price: {input: 0, output: 0}}, gpt-5-mini: {tools: false}}}")
	price, from := p.Price("gpt-5")
	require.Equal(t, chain.Price{}, price, "0 is a price")
	require.Equal(t, "configuration", from.String())
	_, price = p.Model("gpt-5-mini")
	require.Equal(t, 0.25, price.Input, "other settings of a model leave its price alone")
	_, from = p.Price("gpt-5-mini")
	require.Regexp(t, `^shipped, as of 20\d\d-\d\d-\d\d$`, from.String())
	_, from = p.Price("m")
	require.Equal(t, "none", from.String())
}
