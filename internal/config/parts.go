package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Keys of the llm_features bucket.
const (
	keyBreaker   = "breaker"
	keyDataRules = "data_rules"
	keyApplied   = "applied_file" // digest of the file that was applied last
	kindProvider = "provider"     // provider.<name>
	kindFeature  = "feature"      // feature.<name>
)

// sourceOfParts begins the name of a value of the bucket in errors.
const sourceOfParts = "llm_features/"

// emptyMapping is a part that takes every default.
const emptyMapping = "{}\n"

// Parts is a configuration cut into the values of the llm_features bucket, by
// key. A value is YAML, of which JSON is a part.
type Parts map[string]string

// Keys lists the keys in order.
func (p Parts) Keys() []string { return slices.Sorted(maps.Keys(p)) }

// YAML is the whole as one file, for people and for Parse.
func (p Parts) YAML() string {
	var b strings.Builder
	for _, key := range []string{keyBreaker, keyDataRules, keyLimits} {
		if text, ok := p[key]; ok {
			b.WriteString(key + ":\n" + indent(text, "  "))
		}
	}
	for _, kind := range []string{kindProvider, kindFeature} {
		heading := kind + "s:\n"
		for _, key := range p.Keys() {
			if name, ok := strings.CutPrefix(key, kind+"."); ok {
				text := ":\n" + indent(p[key], "    ")
				if p[key] == emptyMapping {
					text = ": " + emptyMapping
				}
				b.WriteString(heading + "  " + name + text)
				heading = ""
			}
		}
	}
	return b.String()
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(by)
		}
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// parts cuts a file that was found good into its parts.
func (o *outline) parts() (Parts, error) {
	p := Parts{}
	all := slices.Concat(o.providers, o.features)
	for _, s := range []*section{o.breaker, o.rules, o.limits} {
		if s != nil {
			all = append(all, s)
		}
	}
	for _, s := range all {
		text, err := canonical(s.body)
		if err != nil {
			return nil, fmt.Errorf("write %s as YAML: %w", s.path, err)
		}
		p[s.part] = text
	}
	return p, nil
}

// canonical writes a node in one style, without its comments, so that a change
// of style is no change of the configuration.
func canonical(n ast.Node) (string, error) {
	if m, ok := n.(*ast.MappingNode); !ok || len(m.Values) == 0 {
		return emptyMapping, nil
	}
	var value any
	if err := yaml.NodeToValue(n, &value, yaml.UseOrderedMap()); err != nil {
		return "", err
	}
	text, err := yaml.MarshalWithOptions(value, yaml.IndentSequence(true))
	return string(text), err
}

// read reads parts that came from the bucket.
func read(parts Parts) (*Config, []Problem) {
	o := &outline{}
	for _, key := range parts.Keys() {
		o.add(key, parts[key])
	}
	cfg := o.build()
	var problems []Problem
	for _, doc := range o.docs {
		problems = append(problems, doc.problems...)
	}
	return cfg, problems
}

// add reads the value of one key of the bucket.
func (o *outline) add(key, text string) {
	doc := &document{source: sourceOfParts + key}
	o.docs = append(o.docs, doc)
	kind, name, _ := strings.Cut(key, ".")
	path := kind + "s." + name
	var list *[]*section
	switch {
	case key == keyBreaker:
		o.breaker = doc.parse([]byte(text), key, key)
		return
	case key == keyDataRules:
		o.rules = doc.parse([]byte(text), key, key)
		o.rulesLost = o.rules == nil
		return
	case key == keyLimits:
		o.limits = doc.parse([]byte(text), key, key)
		return
	case kind == kindProvider && name != "":
		list = &o.providers
	case kind == kindFeature && name != "":
		list = &o.features
	default:
		doc.add(Problem{part: key, Reason: "unknown key, which nothing reads; remove it with: nats kv del llm_features " + key})
		return
	}
	if s := doc.parse([]byte(text), path, key); s != nil {
		s.name = name
		*list = append(*list, s)
	}
}

// Empty reports whether there is nothing to apply.
func (p Parts) Empty() bool {
	for key := range p {
		if key != keyApplied {
			return false
		}
	}
	return true
}
