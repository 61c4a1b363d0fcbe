package config

import (
	"cmp"
	"slices"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/limits"
)

// Config is a whole configuration that may be applied.
type Config struct {
	Providers []*Provider     // by name
	Features  []chain.Feature // by name; their targets lack Completer and Breaker
	Limits    limits.Policy   // of tenants
}

// Provider returns the provider of that name, nil if there is none.
func (c *Config) Provider(name string) *Provider {
	i, ok := slices.BinarySearchFunc(c.Providers, name, func(p *Provider, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return c.Providers[i]
}

// Parse reads a file. source names it in errors, which are of type *Error. The
// parts are what Push stores.
func Parse(source string, data []byte) (*Config, Parts, error) {
	doc := &document{source: source}
	s := outlineOf(doc, doc.parse(data, "", ""))
	cfg := s.build()
	if err := refuse(doc.problems); err != nil {
		return nil, nil, err
	}
	parts, err := s.parts()
	return cfg, parts, err
}

// Read reads the parts of a bucket. Errors are of type *Error and name the key.
func Read(parts Parts) (*Config, error) {
	cfg, problems := read(parts)
	if err := refuse(problems); err != nil {
		return nil, err
	}
	return cfg, nil
}

// outline is the sections of a configuration, wherever they came from.
type outline struct {
	breaker   *section // nil: absent
	rules     *section // nil: absent, or not to be read at all
	rulesLost bool     // the latter
	limits    *section // nil: absent
	providers []*section
	features  []*section
	docs      []*document
}

// outlineOf finds the parts of a file.
func outlineOf(doc *document, top *section) *outline {
	o := &outline{docs: []*document{doc}}
	if top == nil {
		return o
	}
	top.part = "" // each entry is a part of its own
	if o.breaker = top.sub("breaker"); o.breaker != nil {
		o.breaker.part = keyBreaker
	}
	if o.rules = top.sub(keyDataRules); o.rules != nil {
		o.rules.part = keyDataRules
	}
	o.rulesLost = o.rules == nil && top.has(keyDataRules)
	if o.limits = top.sub("limits"); o.limits != nil {
		o.limits.part = keyLimits
	}
	o.providers = top.subs("providers", kindProvider)
	o.features = top.subs("features", kindFeature)
	top.end()
	if len(o.features) == 0 && len(doc.problems) == 0 {
		top.problem("features", "names no feature; add one, such as features: {default: {targets: [{provider: echo, model: echo}]}}")
	}
	return o
}

// build reads the sections into a Config; what is wrong is in their documents.
func (o *outline) build() *Config {
	b := &builder{providers: make(map[string]*Provider, len(o.providers))}
	b.defaults.Scope = ScopeModel
	if o.breaker != nil {
		b.defaults = readBreaker(o.breaker, b.defaults)
	}
	b.rules = readDataRules(o.rules)
	b.rules.broken = b.rules.broken || o.rulesLost
	cfg := &Config{Limits: limits.Policy{Tenants: readRules(o.limits)}}
	b.limits = &cfg.Limits
	for _, s := range o.providers {
		p := b.provider(s)
		b.providers[s.name] = p
		cfg.Providers = append(cfg.Providers, p)
	}
	for _, s := range o.features {
		cfg.Features = append(cfg.Features, b.feature(s))
	}
	slices.SortFunc(cfg.Providers, func(a, b *Provider) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(cfg.Features, func(a, b chain.Feature) int { return cmp.Compare(a.Name, b.Name) })
	return cfg
}

// builder reads one part after another, since a part may refer to an earlier.
type builder struct {
	defaults  Breaker
	rules     dataRules
	providers map[string]*Provider
	limits    *limits.Policy // gets those of features
}
