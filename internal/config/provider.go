package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/anthropic"
	"github.com/llmbus/llmbus/provider/gemini"
	"github.com/llmbus/llmbus/provider/ollama"
	"github.com/llmbus/llmbus/provider/openai"
	"github.com/llmbus/llmbus/subjects"
)

// Kind is the protocol that a provider speaks.
type Kind string

const (
	KindOpenAI    Kind = "openai"
	KindAnthropic Kind = "anthropic"
	KindOllama    Kind = "ollama"
	KindGemini    Kind = "gemini"
	KindEcho      Kind = "echo" // answers without a model, for trying things out
)

// Provider is how to reach a provider and what its models can do. Of the
// adapter settings only those of Kind are meant, and they lack the key.
type Provider struct {
	Name    string
	Kind    Kind
	KeyEnv  string // environment variable that holds the key; empty is none
	KeyFile string // file whose first line is the key; empty is none
	Breaker Breaker

	OpenAI    openai.Config
	Anthropic anthropic.Config
	Ollama    ollama.Config
	Gemini    gemini.Config

	base   provider.Capabilities // of models that declare nothing
	models map[string]model
}

// model is what a provider's settings say of one model.
type model struct {
	can   provider.Capabilities
	price *chain.Price // nil: not declared
}

// Model returns what a model can do and costs.
func (p *Provider) Model(id string) (provider.Capabilities, chain.Price) {
	price, _ := p.Price(id)
	if m, ok := p.models[id]; ok {
		return m.can, price
	}
	return p.base, price
}

// network are the settings that every kind with a network has.
type network struct {
	base    string
	headers map[string][]string
	connect time.Duration
}

// provider reads one entry of providers.
func (b *builder) provider(s *section) *Provider {
	p := &Provider{Name: s.name, Kind: Kind(s.name), Breaker: b.defaults}
	if !subjects.ValidFeature(s.name) {
		s.problem("", "the name of a provider must be %s", subjects.FeatureRule)
	}
	named := choice(s, "kind", &p.Kind, KindOpenAI, KindAnthropic, KindOllama, KindGemini, KindEcho)
	if !named && !s.has("kind") && kinds[p.Kind] == nil {
		s.problem("kind", "is missing; it must be openai, anthropic, ollama, gemini or echo")
	}
	if sub := s.sub("breaker"); sub != nil {
		p.Breaker = readBreaker(sub, b.defaults)
	}
	read := kinds[p.Kind]
	if read == nil {
		return p // of which no more can be said
	}
	read(s, p)
	s.texts("regions", &p.base.Regions)
	b.readApproval(s, &p.base)
	p.models = b.readModels(s, p.base)
	s.end()
	return p
}

// kinds reads what only some kinds take.
var kinds = map[Kind]func(*section, *Provider){
	KindOpenAI:    readOpenAI,
	KindAnthropic: readAnthropic,
	KindOllama:    readOllama,
	KindGemini:    readGemini,
	KindEcho:      readEcho,
}

// keyHeaders carry credentials. A configuration is stored in the bucket, where
// whoever may read the policy could read them.
var keyHeaders = []string{"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}

func readNetwork(s *section) network {
	var n network
	s.text("base_url", &n.base)
	s.duration("connect_timeout", &n.connect, 10*time.Millisecond, time.Minute, false)
	sub := s.sub("headers")
	if sub == nil {
		return n
	}
	n.headers = map[string][]string{}
	for i, name := range sub.order {
		if slices.Contains(keyHeaders, strings.ToLower(name)) {
			sub.problem(name, "holds a key, which must not be written here; name the environment variable that holds it in api_key_env, or a file in api_key_file")
		}
		var value string
		if sub.text(name, &value) {
			n.headers[name] = []string{value}
		}
		if slices.ContainsFunc(sub.order[:i], func(other string) bool { return strings.EqualFold(name, other) }) {
			sub.problem(name, "comes twice, since case does not matter in names of headers")
		}
	}
	return n
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readKey reads where the key is. A kind's own service wants one, so its usual
// variable is the default there; another base_url may well need none.
func readKey(s *section, p *Provider, usual string) {
	if s.has("api_key") {
		s.known = append(s.known, "api_key")
		s.problem("api_key", "a key must not be written here; name the environment variable that holds it in api_key_env, or a file in api_key_file")
	}
	env, file := s.text("api_key_env", &p.KeyEnv), s.text("api_key_file", &p.KeyFile)
	switch {
	case env && file:
		s.problem("api_key_file", "cannot be set together with api_key_env; remove one")
	case env && !envName.MatchString(p.KeyEnv):
		s.problem("api_key_env", "must be the name of an environment variable, such as %s, and not the key itself", cmp.Or(usual, "PROVIDER_KEY"))
	case !env && !file && !s.has("base_url") && usual != "":
		p.KeyEnv = usual
	}
}

// readModels reads what models can do beyond, or less than, their kind.
func (b *builder) readModels(s *section, base provider.Capabilities) map[string]model {
	models := make(map[string]model)
	for _, m := range s.subs("models", "") {
		can, price := base, (*chain.Price)(nil)
		m.flag("tools", &can.Tools)
		m.flag("tool_choice", &can.ToolChoice)
		m.flag("vision", &can.Vision)
		m.flag("image_urls", &can.ImageURLs)
		m.flag("json_schema", &can.JSONSchema)
		m.flag("streaming", &can.Streaming)
		m.flag("seed", &can.Seed)
		m.whole("context_window", &can.ContextWindow, 1, 1e9)
		m.whole("max_output_tokens", &can.MaxOutputTokens, 1, 1e9)
		m.texts("regions", &can.Regions)
		b.readApproval(m, &can)
		if sub := m.sub("price"); sub != nil {
			price = new(readPrice(sub))
		}
		m.end()
		imply(m, &can)
		models[m.name] = model{can, price}
	}
	return models
}

// imply takes back what cannot be without something that was switched off, and
// refuses it where it was asked for.
func imply(s *section, can *provider.Capabilities) {
	for _, rule := range []struct {
		key   string
		does  *bool
		needs string
		has   bool
	}{
		{"tool_choice", &can.ToolChoice, "tools", can.Tools},
		{"image_urls", &can.ImageURLs, "vision", can.Vision},
	} {
		if !*rule.does || rule.has {
			continue
		}
		if s.has(rule.key) {
			s.problem(rule.key, "needs %s: true", rule.needs)
		}
		*rule.does = false
	}
}

func readPrice(s *section) chain.Price {
	var p chain.Price
	const most = 1e6
	input := s.number("input", &p.Input, 0, most)
	output := s.number("output", &p.Output, 0, most)
	if s.number("cached_input", &p.CachedInput, 0, most) && p.CachedInput == 0 {
		s.problem("cached_input", "must be above 0; remove the key if cached input costs as much as input")
	}
	if !input && !s.has("input") || !output && !s.has("output") {
		s.problem("", "needs both input and output, in US dollars per million tokens")
	}
	s.end()
	return p
}
