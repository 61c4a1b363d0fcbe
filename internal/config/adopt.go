package config

import (
	"slices"
	"strings"
)

// Adopt makes the newest configuration that is valid as a whole out of what the
// bucket holds. A part that is refused is replaced by its text in prev, the
// parts in force, and left out if it has none there or that is refused as well.
// A provider that was removed while a feature still needs it is kept.
//
// usable may refuse a provider for reasons outside the configuration, such as a
// key that this machine lacks; nil accepts all.
//
// It returns the parts in force from now on and why parts of next were not
// taken.
func Adopt(prev, next Parts, usable func(*Provider) error) (*Config, Parts, []Problem) {
	a := adoption{parts: Parts{}, prev: prev, lost: map[string]bool{}}
	for key, text := range next {
		if key != keyApplied {
			a.parts[key] = text
		}
	}
	for {
		cfg, problems := read(a.parts)
		problems = append(problems, unusable(cfg, a.parts, usable)...)
		if len(problems) == 0 {
			return cfg, a.parts, a.refused
		}
		a.stepBack(problems)
	}
}

// adoption is a set of parts on its way to being valid.
type adoption struct {
	parts, prev Parts
	lost        map[string]bool // parts whose text in prev is refused, too
	refused     []Problem
}

// stepBack brings parts one step nearer to prev. Each step puts an old text
// back for the first time or gives a part up for good, so there is an end.
func (a *adoption) stepBack(problems []Problem) {
	for _, p := range problems {
		if !slices.Contains(a.refused, p) {
			a.refused = append(a.refused, p)
		}
	}
	if a.restoreNeeded(problems) { // which may have solved the others
		return
	}
	bad := map[string]bool{}
	for _, p := range problems {
		bad[p.part] = true
	}
	for part := range bad {
		text := a.parts[part]
		old, had := a.prev[part]
		switch {
		case had && old != text && !a.lost[part]:
			a.parts[part] = old
		default:
			a.giveUp(part)
		}
	}
}

// giveUp leaves a part out for good, and with what was to guard the features
// every feature: data rules, and limits of which none are in force.
func (a *adoption) giveUp(part string) {
	delete(a.parts, part)
	a.lost[part] = true
	if part != keyDataRules && (part != keyLimits || a.prev != nil) {
		return
	}
	for key := range a.parts {
		if strings.HasPrefix(key, kindFeature+".") {
			a.giveUp(key)
		}
	}
}

// restoreNeeded puts parts back that others need and that were removed, or
// changed so that they no longer fit.
func (a *adoption) restoreNeeded(problems []Problem) (restored bool) {
	for _, p := range problems {
		old, had := a.prev[p.needs]
		now, there := a.parts[p.needs]
		switch {
		case a.lost[p.needs]:
		case had && now != old:
			a.parts[p.needs], restored = old, true
		case !had && there && a.prev != nil: // new, and what is in force does not fit
			delete(a.parts, p.needs)
			a.lost[p.needs], restored = true, true
		}
	}
	return restored
}

func unusable(cfg *Config, parts Parts, usable func(*Provider) error) []Problem {
	if usable == nil {
		return nil
	}
	var problems []Problem
	for _, p := range cfg.Providers {
		key := kindProvider + "." + p.Name
		if _, there := parts[key]; !there {
			continue
		}
		if err := usable(p); err != nil {
			problems = append(problems, Problem{Source: sourceOfParts + key, Key: "providers." + p.Name, Reason: err.Error(), part: key})
		}
	}
	return problems
}
