package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/provider"
)

// targets reads the targets of a feature. complete is false where one of them
// could not be read, so that nothing can be said of them together.
func (b *builder) targets(s *section, f *chain.Feature, limits provider.Timeouts) (complete bool) {
	before := len(s.doc.problems)
	items := s.items("targets")
	if len(items) == 0 {
		if len(s.doc.problems) == before {
			s.problem("targets", "names no target; add one, such as targets: [{provider: echo, model: echo}]")
		}
		return false
	}
	if len(items) > mostTargets {
		s.problem("targets", "holds %d targets; %d are enough", len(items), mostTargets)
		return false
	}
	for i, item := range items {
		t := chain.Target{Attempts: 1, Limits: limits}
		if len(items) == 1 || f.OnRateLimit == chain.RateLimitWait {
			t.Attempts = 2
		}
		b.target(item, &t)
		judgeTimes(item, f, &t, i == len(items)-1, len(items) == 1)
		if slices.ContainsFunc(f.Targets, func(o chain.Target) bool { return o.Provider == t.Provider && o.Model == t.Model }) {
			item.problem("model", "the same provider and model come twice; set attempts on the first instead")
		}
		f.Targets = append(f.Targets, t)
	}
	return len(s.doc.problems) == before
}

func (b *builder) target(s *section, t *chain.Target) {
	if !s.text("provider", &t.Provider) && !s.has("provider") {
		s.problem("provider", "is missing")
	}
	if !s.text("model", &t.Model) && !s.has("model") {
		s.problem("model", "is missing")
	}
	s.whole("attempts", &t.Attempts, 1, 10)
	s.duration("timeout", &t.Timeout, leastTimeout, mostTimeout, false)
	s.duration("first_token_timeout", &t.Limits.FirstToken, leastTimeout, mostTimeout, true)
	s.duration("idle_timeout", &t.Limits.Idle, leastTimeout, mostTimeout, true)
	s.end()
	if t.Provider == "" {
		return
	}
	p := b.providers[t.Provider]
	if p == nil {
		s.doc.add(s.place("provider", Problem{Reason: b.noProvider(t.Provider), needs: kindProvider + "." + t.Provider}))
		return
	}
	t.Can, t.Price = p.Model(t.Model)
	for _, key := range []string{"first_token_timeout", "idle_timeout"} {
		if s.has(key) && !t.Can.Streaming {
			s.problem(key, "is for streams, and the model is declared not to stream; remove it")
		}
	}
}

func (b *builder) noProvider(name string) string {
	known := slices.Sorted(maps.Keys(b.providers))
	reason := fmt.Sprintf("there is no provider %q", name)
	if guess := nearest(name, known); guess != "" {
		return reason + "; did you mean " + guess + "?"
	}
	if len(known) == 0 {
		return reason + "; add it under providers"
	}
	return reason + "; add it under providers, or use one of " + strings.Join(known, ", ")
}

// judgeTimes refuses limits that can never pass.
func judgeTimes(s *section, f *chain.Feature, t *chain.Target, last, only bool) {
	whole, of := f.Timeout, "the feature's timeout"
	if s.has("timeout") {
		switch {
		case only:
			s.problem("timeout", "does not apply to an only target, which gets all the time there is; set the feature's timeout")
		case t.Timeout > f.Timeout:
			s.problem("timeout", "must not be above the feature's timeout of %s", short(f.Timeout))
		}
		whole, of = t.Timeout, "the target's timeout"
	}
	if s.has("first_token_timeout") {
		switch {
		case last:
			s.problem("first_token_timeout", "does not apply to the last target, which gets all the time that remains; remove it")
		case t.Limits.FirstToken >= whole:
			s.problem("first_token_timeout", "must be below %s of %s", of, short(whole))
		}
	}
	if s.has("idle_timeout") && t.Limits.Idle >= whole {
		s.problem("idle_timeout", "must be below %s of %s", of, short(whole))
	}
}
