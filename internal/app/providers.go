package app

import (
	"fmt"
	"reflect"

	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/anthropic"
	"github.com/llmbus/llmbus/provider/echo"
	"github.com/llmbus/llmbus/provider/gemini"
	"github.com/llmbus/llmbus/provider/ollama"
	"github.com/llmbus/llmbus/provider/openai"
	"github.com/llmbus/llmbus/provider/wire"
)

// adapters keeps the adapter of each provider while its settings stay the same,
// so that a new policy does not cost warm connections. It is used by one
// goroutine.
type adapters struct {
	env    *Environment
	inUse  map[string]*adapter // by provider
	spares map[string]*adapter // made while a configuration is tried
}

// adapter is a provider that can be called.
type adapter struct {
	llm.Completer
	settings settings
}

// settings are all that an adapter is made from.
type settings struct {
	kind      config.Kind
	key       wire.Secret
	openai    openai.Config
	anthropic anthropic.Config
	ollama    ollama.Config
	gemini    gemini.Config
}

func newAdapters(env *Environment) *adapters {
	return &adapters{env: env, inUse: map[string]*adapter{}, spares: map[string]*adapter{}}
}

// usable makes the adapter of a provider, or says why this machine cannot.
func (a *adapters) usable(p *config.Provider) error {
	key, err := a.env.key(p)
	if err != nil {
		return err
	}
	want := settings{p.Kind, key, p.OpenAI, p.Anthropic, p.Ollama, p.Gemini}
	for _, have := range []*adapter{a.inUse[p.Name], a.spares[p.Name]} {
		if have != nil && reflect.DeepEqual(have.settings, want) {
			a.spares[p.Name] = have
			return nil
		}
	}
	completer, err := newProvider(want, a.env.Pool)
	if err != nil {
		return err
	}
	a.spares[p.Name] = &adapter{completer, want}
	return nil
}

// settle takes the adapters of a configuration into use and lets go of the
// connections of those that went out of use. Calls under way end in peace.
func (a *adapters) settle(cfg *config.Config) {
	next := make(map[string]*adapter, len(cfg.Providers))
	for _, p := range cfg.Providers {
		next[p.Name] = a.spares[p.Name]
	}
	for name, old := range a.inUse {
		if closer, ok := old.Completer.(interface{ Close() }); ok && next[name] != old {
			closer.Close()
		}
	}
	a.inUse, a.spares = next, map[string]*adapter{}
}

// newProvider makes an adapter that keeps as many connections as there may be
// requests at once.
func newProvider(s settings, pool int) (llm.Completer, error) {
	switch s.kind {
	case config.KindOpenAI:
		s.openai.APIKey, s.openai.MaxIdleConns = s.key, pool
		return openai.New(s.openai)
	case config.KindAnthropic:
		s.anthropic.APIKey, s.anthropic.MaxIdleConns = s.key, pool
		return anthropic.New(s.anthropic)
	case config.KindOllama:
		s.ollama.APIKey, s.ollama.MaxIdleConns = s.key, pool
		return ollama.New(s.ollama)
	case config.KindGemini:
		s.gemini.APIKey, s.gemini.MaxIdleConns = s.key, pool
		return gemini.New(s.gemini)
	case config.KindEcho:
		return echo.Provider{}, nil
	}
	return nil, fmt.Errorf("kind %q is not known here", s.kind)
}
