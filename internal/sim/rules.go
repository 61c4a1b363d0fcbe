package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Rule makes calls fail that its filters match. The newest rule that matches
// wins, and any rule wins over the name of the model.
type Rule struct {
	Fault    string        // as in a model's name, Prefix optional
	For      time.Duration // how long the rule holds; 0 is until Clear
	Times    int           // how many calls it meets; 0 is all
	Provider string        // openai, anthropic or ollama; empty is all
	Model    string        // the exact model; empty is all
}

// active is a Rule in force.
type active struct {
	Rule
	fault Fault
	until time.Time // zero: no end
	left  int       // with Times
}

// rules is what was set by Control.
type rules struct {
	mu   sync.Mutex
	list []*active // newest last
}

// Control sets a rule. A rule of kind down without Provider and Model closes
// the port at once, for Rule.For or the fault's own time; with a filter, the
// calls that match are reset, since a port cannot be closed to some.
func (s *Server) Control(rule Rule) error { return s.control(rule, nil) }

// control spares the connection that the rule came over from going down.
func (s *Server) control(rule Rule, spare *conn) error {
	fault, err := ParseFault(rule.Fault)
	if err != nil {
		return err
	}
	if rule.For < 0 || rule.Times < 0 {
		return fmt.Errorf("for and times must not be negative")
	}
	if fault.Kind == Down && rule.Provider == "" && rule.Model == "" {
		if rule.For > 0 {
			fault.Wait = rule.For
		}
		s.gate.down(fault.Wait, spare)
		return nil
	}
	if fault.Kind == Down {
		fault.Kind = Reset
		if rule.For == 0 {
			rule.For = fault.Wait
		}
	}
	s.rules.add(rule, fault, time.Now())
	return nil
}

// Clear drops all rules and ends a time down.
func (s *Server) Clear() {
	s.rules.clear()
	s.gate.open()
}

func (r *rules) add(rule Rule, fault Fault, now time.Time) {
	a := &active{Rule: rule, fault: fault, left: rule.Times}
	if rule.For > 0 {
		a.until = now.Add(rule.For)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, a)
}

func (r *rules) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

// match returns the fault of the newest rule for a call, and uses it up by one.
func (r *rules) match(provider, model string, now time.Time) (Fault, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	for _, a := range slices.Backward(r.list) {
		if a.Provider != "" && a.Provider != provider || a.Model != "" && a.Model != model {
			continue
		}
		a.left--
		return a.fault, true
	}
	return Fault{}, false
}

func (r *rules) expire(now time.Time) {
	r.list = slices.DeleteFunc(r.list, func(a *active) bool {
		return !a.until.IsZero() && !now.Before(a.until) || a.Times > 0 && a.left <= 0
	})
}

// inForce returns the rules that still hold, with what is left of them.
func (r *rules) inForce(now time.Time) []Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	list := make([]Rule, 0, len(r.list))
	for _, a := range r.list {
		rule := a.Rule
		if rule.Times > 0 {
			rule.Times = a.left
		}
		if !a.until.IsZero() {
			rule.For = a.until.Sub(now)
		}
		list = append(list, rule)
	}
	return list
}
