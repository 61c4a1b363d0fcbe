package config_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/config"
)

const overEcho = "targets: [{provider: echo, model: echo}]"

func names(cfg *config.Config) (providers, features []string) {
	for _, p := range cfg.Providers {
		providers = append(providers, p.Name)
	}
	for _, f := range cfg.Features {
		features = append(features, f.Name)
	}
	return providers, features
}

func texts(problems []config.Problem) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.String())
	}
	return list
}

// changed is parts with one of them different, or gone.
func changed(parts config.Parts, key, text string) config.Parts {
	parts = maps.Clone(parts)
	if parts[key] = text; text == "" {
		delete(parts, key)
	}
	return parts
}

func TestAdopt(t *testing.T) {
	good := config.Parts{"provider.echo": "{}", "feature.a": overEcho}
	guarded := config.Parts{"data_rules": "classes: [public]", "provider.echo": "approved_for: [public]", "feature.a": "data_class: public\n" + overEcho}
	for _, tc := range []struct {
		name       string
		prev, next config.Parts
		want       config.Parts
		problems   []string
	}{
		{"all of it", nil, good, good, nil},
		{"a bad part without a past is left out", nil,
			config.Parts{"provider.echo": "{}", "feature.a": overEcho, "feature.b": "targets: 5", "junk": "1"}, good,
			[]string{"llm_features/feature.b:1:1: features.b.targets: must be a list",
				"llm_features/junk: unknown key, which nothing reads; remove it with: nats kv del llm_features junk"}},
		{"a bad part stays as it was", good, config.Parts{"provider.echo": "{}", "feature.a": "timeout: 0"}, good,
			[]string{"llm_features/feature.a:1:1: features.a.timeout: must be a time with its unit, such as 20s, from 10ms to 1h",
				"llm_features/feature.a:1:1: features.a.targets: names no target; add one, such as targets: [{provider: echo, model: echo}]"}},
		{"the others move on", good, config.Parts{"provider.echo": "{}", "feature.a": "x", "feature.b": overEcho},
			config.Parts{"provider.echo": "{}", "feature.a": overEcho, "feature.b": overEcho},
			[]string{"llm_features/feature.a:1:1: features.a: must be a mapping of keys to values"}},
		{"a provider in use is kept", good, config.Parts{"feature.a": overEcho}, good,
			[]string{`llm_features/feature.a:1:12: features.a.targets[0].provider: there is no provider "echo"; add it under providers`}},
		{"a provider out of use goes", good, config.Parts{}, config.Parts{}, nil},
		{"a past that is refused too is given up", config.Parts{"provider.p": "kind: x", "feature.a": overEcho},
			config.Parts{"provider.p": "kind: y", "feature.a": overEcho, "provider.echo": "{}"}, good,
			[]string{"llm_features/provider.p:1:1: providers.p.kind: must be openai, anthropic, ollama, gemini or echo"}},
		{"bad data rules stay as they were", guarded, changed(guarded, "data_rules", "classes: []"), guarded,
			[]string{"llm_features/data_rules:1:1: data_rules.classes: must be a list in brackets with at least one entry"}},
		{"data rules that cannot be read stay as they were", guarded, changed(guarded, "data_rules", "a: [1"), guarded,
			[]string{"llm_features/data_rules:1:4: data_rules: not valid YAML: sequence end token ']' not found"}},
		{"data rules that others still need are kept", guarded, changed(guarded, "data_rules", ""), guarded,
			[]string{"llm_features/feature.a:1:1: features.a.data_class: no data classes are declared; list them in data_rules, such as data_rules: {classes: [public, internal]}, or remove it",
				"llm_features/provider.echo:1:1: providers.echo.approved_for: no data classes are declared; list them in data_rules, such as data_rules: {classes: [public, internal]}, or remove it"}},
		{"data rules that take a class away which others name stay", guarded, changed(guarded, "data_rules", "classes: [secret]"), guarded,
			[]string{`llm_features/feature.a:1:1: features.a.data_class: there is no data class "public"; known are secret`,
				`llm_features/provider.echo:1:1: providers.echo.approved_for: there is no data class "public"; known are secret`}},
		{"data rules come last if a feature lacks a class", good, changed(good, "data_rules", "classes: [public]"), good,
			[]string{"llm_features/feature.a:1:1: features.a.data_class: is missing; where data is classified, each feature says what its requests hold that name no class: set it to one of public"}},
		{"nothing is served without its data rules", nil, changed(guarded, "data_rules", "classes: []"), config.Parts{},
			[]string{"llm_features/data_rules:1:1: data_rules.classes: must be a list in brackets with at least one entry",
				"llm_features/provider.echo:1:1: providers.echo.approved_for: no data classes are declared; list them in data_rules, such as data_rules: {classes: [public, internal]}, or remove it"}},
		{"a new worker serves what fits the data rules", nil, changed(guarded, "feature.b", overEcho), guarded,
			[]string{"llm_features/feature.b:1:1: features.b.data_class: is missing; where data is classified, each feature says what its requests hold that name no class: set it to one of public"}},
		{"bad limits stay as they were", changed(good, "limits", "default: {concurrent: 1}"), changed(good, "limits", "default: {concurrent: 0}"),
			changed(good, "limits", "default: {concurrent: 1}"), []string{"llm_features/limits:1:11: limits.default.concurrent: must be a whole number from 1 to 1e15, or off"}},
		{"bad limits where there were none", good, changed(good, "limits", "5"), good,
			[]string{"llm_features/limits:1:1: limits: must be a mapping of keys to values"}},
		{"nothing is served without its limits", nil, changed(good, "limits", "5"), config.Parts{"provider.echo": "{}"},
			[]string{"llm_features/limits:1:1: limits: must be a mapping of keys to values"}},
		{"the digest is no part", nil, config.Parts{"applied_file": "abc"}, config.Parts{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, parts, problems := config.Adopt(tc.prev, tc.next, nil)
			require.Equal(t, tc.want, parts)
			require.Equal(t, tc.problems, texts(problems))
			fresh, err := config.Read(parts)
			require.NoError(t, err)
			require.Equal(t, fresh, cfg)
		})
	}
}

func TestAdoptWithoutTheKeyOfAProvider(t *testing.T) {
	prev := config.Parts{"provider.echo": "{}", "feature.a": overEcho}
	next := config.Parts{"provider.echo": "{}", "provider.openai": "{}", "feature.a": "targets: [{provider: openai, model: m}]"}
	cfg, parts, problems := config.Adopt(prev, next, func(p *config.Provider) error {
		if p.KeyEnv != "" {
			return errors.New("the environment variable " + p.KeyEnv + " is not set")
		}
		return nil
	})
	require.Equal(t, prev, parts)
	providers, features := names(cfg)
	require.Equal(t, []string{"echo"}, providers)
	require.Equal(t, []string{"a"}, features)
	require.Equal(t, "llm_features/provider.openai: providers.openai: the environment variable OPENAI_API_KEY is not set", problems[0].String())
}
