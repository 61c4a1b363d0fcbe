package config_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/limits"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/openai"
)

func full(t *testing.T) (*config.Config, config.Parts) {
	t.Helper()
	data, err := os.ReadFile("testdata/full.yaml")
	require.NoError(t, err)
	cfg, parts, err := config.Parse("full.yaml", data)
	require.NoError(t, err)
	return cfg, parts
}

// feature returns a feature of that name.
func feature(t *testing.T, cfg *config.Config, name string) chain.Feature {
	t.Helper()
	for _, f := range cfg.Features {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "no feature "+name)
	return chain.Feature{}
}

func TestEverySettingOfFeature(t *testing.T) {
	cfg, _ := full(t)
	mini, azure := cfg.Provider("openai"), cfg.Provider("azure")
	can, price := mini.Model("gpt-5-mini")
	azureCan, _ := azure.Model("gpt-5-mini")
	require.Equal(t, chain.Feature{
		Name: "support", Class: llm.ClassInteractive, DataClass: "internal", Timeout: 20 * time.Second,
		DataClasses: []string{"public", "internal", "confidential"}, MinDataClass: "public", Regions: []string{"eu"},
		Targets: []chain.Target{
			{Provider: "openai", Model: "gpt-5-mini", Can: can, Attempts: 2, Timeout: 8 * time.Second,
				Limits: provider.Timeouts{FirstToken: 4 * time.Second}, Price: price},
			{Provider: "azure", Model: "gpt-5-mini", Can: azureCan, Attempts: 3,
				Limits: provider.Timeouts{FirstToken: 10 * time.Second, Idle: 10 * time.Second}},
		},
		OnRateLimit: chain.RateLimitWait, OnQuota: chain.Fail, OnMisconfigured: chain.FailOver, OnRefusal: chain.FailOver,
		OnInvalidOutput: chain.Fail, OnInterrupt: chain.InterruptRestart, Commit: chain.Commit{Characters: 80, After: 500 * time.Millisecond},
		Jobs:   chain.Jobs{Timeout: 5 * time.Minute, Backoff: jobs.DefaultBackoff()},
		Repair: chain.RepairNone, Fallback: []llm.FallbackMode{llm.FallbackCached, llm.FallbackStatic}, StaticText: "Please try again\nin an hour.\n",
	}, feature(t, cfg, "support"))
}

func TestEverySettingOfProvider(t *testing.T) {
	cfg, _ := full(t)
	p := cfg.Provider("openai")
	require.Equal(t, openai.Config{
		BaseURL: "https://api.openai.com/v1", Organization: "org-1", Project: "proj-1", API: openai.APIResponses,
		Headers: http.Header{"X-Title": {"demo"}}, ConnectTimeout: 2 * time.Second,
	}, p.OpenAI)
	require.Equal(t, config.Breaker{Scope: config.ScopeModel, Settings: breaker.Settings{
		Threshold: 3, Window: 20 * time.Second, CoolDown: 5 * time.Second, MaxCoolDown: 2 * time.Minute, ProbeTimeout: 15 * time.Second,
	}}, p.Breaker)
	require.Equal(t, "openai.gpt-5-mini", p.Breaker.Key("openai", "gpt-5-mini"))
	require.Equal(t, "azure", cfg.Provider("azure").Breaker.Key("azure", "gpt-5-mini"), "scope: provider")

	can, price := p.Model("gpt-5-mini")
	require.Equal(t, provider.Capabilities{
		Vision: true, ImageURLs: true, JSONSchema: true, Streaming: true, ContextWindow: 400_000, MaxOutputTokens: 128_000,
		Regions: []string{"eu"}, ApprovedFor: []string{"public", "internal"},
	}, can, "without tools there is no tool choice")
	require.Equal(t, chain.Price{Input: 0.25, CachedInput: 0.025, Output: 2}, price)
	can, price = p.Model("another")
	require.Equal(t, []string{"us"}, can.Regions)
	require.True(t, can.ToolChoice)
	require.Zero(t, price)
}

func TestWhereKeysAre(t *testing.T) {
	cfg, _ := full(t)
	for name, want := range map[string][2]string{
		"openai": {"OPENAI_API_KEY", ""}, "azure": {"", "/run/secrets/azure"}, "local": {"", ""}, "anthropic": {"ANTHROPIC_API_KEY", ""},
		"gemini": {"GEMINI_API_KEY", ""}, "ollama": {"", ""}, "echo": {"", ""},
	} {
		p := cfg.Provider(name)
		require.Equal(t, want, [2]string{p.KeyEnv, p.KeyFile}, name)
	}
	require.Nil(t, cfg.Provider("nobody"))
}

func TestDefaultsByClass(t *testing.T) {
	cfg, _ := full(t)
	nightly := feature(t, cfg, "nightly")
	require.Equal(t, 5*time.Minute, nightly.Timeout)
	require.Equal(t, chain.RateLimitWait, nightly.OnRateLimit)
	require.Equal(t, provider.Timeouts{FirstToken: time.Minute, Idle: time.Minute}, nightly.Targets[0].Limits)
	require.Equal(t, 2, nightly.Targets[0].Attempts, "without a second attempt there is nothing to wait for")
	require.Empty(t, nightly.Fallback)

	extract := feature(t, cfg, "extract")
	require.Equal(t, time.Minute, extract.Timeout)
	require.Equal(t, 2, extract.Targets[0].Attempts, "an only target")
	require.Equal(t, chain.RepairFence, extract.Repair)
	require.Equal(t, chain.RateLimitFailOver, extract.OnRateLimit)
	require.Equal(t, chain.InterruptQueue, extract.OnInterrupt)
	require.Equal(t, []llm.FallbackMode{llm.FallbackQueued}, extract.Fallback)
	require.Equal(t, chain.Jobs{Timeout: 10 * time.Minute, Backoff: []time.Duration{time.Second, 2 * time.Minute}}, extract.Jobs)
}

func TestPartsMeanTheSameAsTheFile(t *testing.T) {
	cfg, parts := full(t)
	require.Equal(t, []string{"breaker", "data_rules", "feature.extract", "feature.nightly", "feature.support", "limits", "provider.anthropic", "provider.azure",
		"provider.echo", "provider.gemini", "provider.local", "provider.ollama", "provider.openai"}, parts.Keys())
	again, err := config.Read(parts)
	require.NoError(t, err)
	require.Equal(t, cfg, again)

	fromText, cut, err := config.Parse("shown", []byte(parts.YAML()))
	require.NoError(t, err)
	require.Equal(t, parts, cut)
	require.Equal(t, cfg, fromText)
}

func TestLimits(t *testing.T) {
	cfg, _ := full(t)
	require.NoError(t, cfg.Limits.Validate())
	minute, hour, day := limits.Minute, limits.Hour, limits.Day
	require.Equal(t, limits.Policy{
		Tenants: limits.Rules{
			Default: []limits.Limit{{Kind: limits.Requests, Window: minute, Amount: 600}, {Kind: limits.Tokens, Window: hour, Amount: 2_000_000},
				{Kind: limits.USD, Window: day, Amount: 20e9}, {Kind: limits.Concurrent, Amount: 50}},
			Tenants: map[string][]limits.Limit{"acme": {{Kind: limits.Tokens, Window: hour, Amount: 2_000_000},
				{Kind: limits.Requests, Window: minute, Amount: 6000}, {Kind: limits.USD, Window: day, Amount: 5e8}}},
		},
		Features: map[string]limits.Rules{"support": {Default: []limits.Limit{{Kind: limits.Requests, Window: minute, Amount: 60}}}},
	}, cfg.Limits)
}

func TestDefault(t *testing.T) {
	cfg, _, err := config.Default(config.Found{})
	require.NoError(t, err)
	require.Equal(t, "echo", feature(t, cfg, "default").Targets[0].Provider)

	cfg, _, err = config.Default(config.Found{
		OpenAI: config.Service{KeyEnv: "OPENAI_API_KEY", Model: "gpt-5-mini"},
		Ollama: config.Service{BaseURL: "http://127.0.0.1:11434", Model: "llama3.2:1b"},
	})
	require.NoError(t, err)
	f := feature(t, cfg, "default")
	require.Len(t, f.Targets, 2)
	require.Equal(t, "gpt-5-mini", f.Targets[0].Model)
	require.Equal(t, "llama3.2:1b", f.Targets[1].Model)
	require.Equal(t, "http://127.0.0.1:11434", cfg.Provider("ollama").Ollama.BaseURL)
}
