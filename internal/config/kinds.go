package config

import (
	"strings"
	"time"

	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/anthropic"
	"github.com/llmbus/llmbus/provider/gemini"
	"github.com/llmbus/llmbus/provider/ollama"
	"github.com/llmbus/llmbus/provider/openai"
)

func readOpenAI(s *section, p *Provider) {
	n := readNetwork(s)
	c := openai.Config{BaseURL: n.base, Headers: n.headers, ConnectTimeout: n.connect}
	s.text("organization", &c.Organization)
	s.text("project", &c.Project)
	choice(s, "api", &c.API, openai.APIChat, openai.APIResponses)
	choice(s, "family", &c.Family, openai.FamilyOpenAI, openai.FamilyCompatible, openai.FamilyMistral)
	s.text("max_tokens_field", &c.MaxTokensField)
	usage := true
	s.flag("stream_usage", &usage)
	c.NoStreamUsage = !usage
	if azure := s.sub("azure"); azure != nil {
		c.Azure = &openai.Azure{}
		azure.text("api_version", &c.Azure.APIVersion)
		azure.end()
	}
	readKey(s, p, "OPENAI_API_KEY")
	refuseClearKey(s, p, n.base)
	judge(s, c.Validate())
	p.OpenAI, p.base = c, c.Capabilities()
}

func readAnthropic(s *section, p *Provider) {
	n := readNetwork(s)
	c := anthropic.Config{BaseURL: n.base, Headers: n.headers, ConnectTimeout: n.connect}
	s.text("version", &c.Version)
	s.texts("betas", &c.Betas)
	s.whole("default_max_tokens", &c.DefaultMaxTokens, 1, 1e9)
	readKey(s, p, "ANTHROPIC_API_KEY")
	refuseClearKey(s, p, n.base)
	judge(s, c.Validate())
	p.Anthropic, p.base = c, c.Capabilities()
}

func readOllama(s *section, p *Provider) {
	n := readNetwork(s)
	c := ollama.Config{BaseURL: n.base, Headers: n.headers, ConnectTimeout: n.connect}
	s.whole("context_tokens", &c.ContextTokens, 1, 1e9)
	s.duration("keep_alive", &c.KeepAlive, time.Second, 30*24*time.Hour, false)
	readKey(s, p, "")
	refuseClearKey(s, p, n.base)
	judge(s, c.Validate())
	p.Ollama, p.base = c, c.Capabilities()
	if c.ContextTokens > 0 {
		p.base.ContextWindow = c.ContextTokens
	}
}

func readGemini(s *section, p *Provider) {
	n := readNetwork(s)
	c := gemini.Config{BaseURL: n.base, Headers: n.headers, ConnectTimeout: n.connect}
	s.text("models_path", &c.ModelsPath)
	readKey(s, p, "GEMINI_API_KEY")
	refuseClearKey(s, p, n.base)
	judge(s, c.Validate())
	p.Gemini, p.base = c, c.Capabilities()
}

// readEcho takes nothing: there is nowhere to connect to.
func readEcho(_ *section, p *Provider) { p.base = provider.Capabilities{Streaming: true} }

// judge reports what an adapter says of its settings. Its errors begin with the
// key they speak of.
func judge(s *section, err error) {
	if err == nil {
		return
	}
	key, reason, _ := strings.Cut(err.Error(), " ")
	if key = strings.TrimSuffix(key, ":"); !s.has(key) {
		key, reason = "", err.Error()
	}
	s.problem(key, "%s", reason)
}
