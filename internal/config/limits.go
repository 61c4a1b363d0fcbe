package config

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/llmbus/llmbus/limits"
)

// keyLimits is the part that limits tenants over all features.
const keyLimits = "limits"

// mostDollars is the largest budget. Half of what a counter can hold remains for
// what is used beyond it.
const mostDollars = 1e9

// kindsOfLimits are the keys of a set of limits.
func kindsOfLimits() []limits.Limit {
	var list []limits.Limit
	for _, kind := range []limits.Kind{limits.Requests, limits.Tokens, limits.USD} {
		for _, w := range limits.Windows() {
			list = append(list, limits.Limit{Kind: kind, Window: w})
		}
	}
	return append(list, limits.Limit{Kind: limits.Concurrent})
}

// readRules reads what holds for every tenant and for those that differ. nil is
// a section that is absent.
func readRules(s *section) limits.Rules {
	var r limits.Rules
	if s == nil {
		return r
	}
	if sub := s.sub("default"); sub != nil {
		r.Default = readLimits(sub, nil)
	}
	for _, sub := range s.subs("tenants", "") {
		if r.Tenants == nil {
			r.Tenants = map[string][]limits.Limit{}
		}
		r.Tenants[sub.name] = readLimits(sub, r.Default)
	}
	if len(s.order) == 0 {
		s.problem("", "needs default, tenants or both; such as default: {requests_per_minute: 600}")
	}
	s.end()
	return r
}

// featureLimits reads what tenants may use of one feature.
func (b *builder) featureLimits(s *section) {
	sub := s.sub("limits")
	if sub == nil {
		return
	}
	if b.limits.Features == nil {
		b.limits.Features = map[string]limits.Rules{}
	}
	b.limits.Features[s.name] = readRules(sub)
}

// readLimits reads a set of limits. What it does not name is as in the default,
// and off is no limit.
func readLimits(s *section, inherited []limits.Limit) []limits.Limit {
	list := slices.Clone(inherited)
	for _, l := range kindsOfLimits() {
		amount, set := readAmount(s, l)
		if !set {
			continue
		}
		list = slices.DeleteFunc(list, func(have limits.Limit) bool { return have.Name() == l.Name() })
		if l.Amount = amount; amount > 0 {
			list = append(list, l)
		}
	}
	if len(s.order) == 0 {
		s.problem("", "sets no limit; name one, such as requests_per_minute: 600")
	}
	s.end()
	return list
}

// readAmount reads one limit; 0 is off. Dollars may have fractions.
func readAmount(s *section, l limits.Limit) (amount int64, set bool) {
	key := l.Name()
	n, ok := s.take(key)
	if !ok {
		return 0, false
	}
	if word, _ := scalar(n); word == off {
		return 0, true
	}
	text := strings.ReplaceAll(n.GetToken().Value, "_", "")
	if l.Kind == limits.USD {
		usd, err := strconv.ParseFloat(text, 64)
		amount = int64(math.Round(usd * limits.NanoUSD))
		if !isNumber(n) || err != nil || usd > mostDollars || amount <= 0 {
			s.problem(key, "must be an amount of US dollars above 0, up to %g, or off%s", mostDollars, special(n))
			return 0, false
		}
		return amount, true
	}
	amount, err := strconv.ParseInt(text, 10, 64)
	if !isNumber(n) || err != nil || amount < 1 || amount > 1e15 {
		s.problem(key, "must be a whole number from 1 to 1e15, or off%s", special(n))
		return 0, false
	}
	return amount, true
}

func isNumber(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	return false
}
