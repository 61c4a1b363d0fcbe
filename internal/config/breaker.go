package config

import (
	"errors"
	"strings"
	"time"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/subjects"
)

// Scope says how much one breaker covers.
type Scope string

const (
	ScopeModel    Scope = "model"    // one model of one provider
	ScopeProvider Scope = "provider" // all models of one provider
)

// Breaker is how the breakers of a provider behave. A zero field of Settings
// stands for the default of package breaker.
type Breaker struct {
	breaker.Settings
	Scope Scope
}

// Key is the breaker's key for a model of a provider.
func (b Breaker) Key(provider, model string) string {
	if b.Scope == ScopeProvider {
		model = ""
	}
	return subjects.BreakerKey(provider, model)
}

// readBreaker reads what differs from the defaults. Bounds are judged by
// package breaker, on what results.
func readBreaker(s *section, b Breaker) Breaker {
	const longest = 24 * time.Hour
	s.whole("threshold", &b.Threshold, 1, 1000)
	s.duration("window", &b.Window, time.Millisecond, longest, false)
	s.duration("cool_down", &b.CoolDown, time.Millisecond, longest, false)
	s.duration("max_cool_down", &b.MaxCoolDown, time.Millisecond, longest, false)
	s.duration("probe_timeout", &b.ProbeTimeout, time.Millisecond, longest, false)
	s.duration("ramp", &b.Ramp, time.Millisecond, longest, true)
	choice(s, "scope", &b.Scope, ScopeModel, ScopeProvider)
	s.end()
	reportBounds(s, b.Settings.Validate())
	return b
}

// reportBounds puts errors of the form "key: reason" in their places.
func reportBounds(s *section, err error) {
	if err == nil {
		return
	}
	list := []error{err}
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		list = joined.Unwrap()
	}
	for _, err := range list {
		key, reason, _ := strings.Cut(err.Error(), ": ")
		s.problem(key, "%s", reason)
	}
}
