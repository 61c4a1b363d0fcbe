package config

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// Found is what the environment offers without a file. A kind whose model is
// empty was not found.
type Found struct {
	OpenAI, Anthropic, Ollama, Gemini Service
}

// Service is one provider of the environment.
type Service struct {
	KeyEnv  string // variable that holds the key; empty is none
	BaseURL string // empty is the kind's own
	Model   string
}

// Default is one feature, default, over every provider found, or over echo
// alone if none was.
func Default(found Found) (*Config, Parts, error) {
	var providers yaml.MapSlice
	var targets []yaml.MapSlice
	for _, p := range []struct {
		kind Kind
		Service
	}{
		{KindOpenAI, found.OpenAI}, {KindAnthropic, found.Anthropic}, {KindGemini, found.Gemini}, {KindOllama, found.Ollama},
	} {
		if p.Model == "" {
			continue
		}
		entry := yaml.MapSlice{{Key: "kind", Value: string(p.kind)}}
		if p.BaseURL != "" {
			entry = append(entry, yaml.MapItem{Key: "base_url", Value: p.BaseURL})
		}
		if p.KeyEnv != "" {
			entry = append(entry, yaml.MapItem{Key: "api_key_env", Value: p.KeyEnv})
		}
		providers = append(providers, yaml.MapItem{Key: string(p.kind), Value: entry})
		targets = append(targets, targetOf(p.kind, p.Model))
	}
	if len(targets) == 0 {
		providers = yaml.MapSlice{{Key: string(KindEcho), Value: yaml.MapSlice{}}}
		targets = []yaml.MapSlice{targetOf(KindEcho, "echo")}
	}
	feature := yaml.MapSlice{{Key: "targets", Value: targets}}
	text, err := yaml.Marshal(yaml.MapSlice{
		{Key: "providers", Value: providers},
		{Key: "features", Value: yaml.MapSlice{{Key: "default", Value: feature}}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("write the default configuration: %w", err)
	}
	return Parse("environment", text)
}

func targetOf(kind Kind, model string) yaml.MapSlice {
	return yaml.MapSlice{{Key: "provider", Value: string(kind)}, {Key: "model", Value: model}}
}
