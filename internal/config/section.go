package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// section is one mapping while it is read. A getter leaves the destination
// alone when its key is absent, reports a value that it cannot take, and says
// whether it set the destination. end reports the keys that no getter knows.
type section struct {
	doc     *document
	name    string   // the key that leads here
	path    string   // of this mapping; empty at the top of a file
	part    string   // key of the bucket that holds it
	node    ast.Node // where problems with the whole are shown
	body    ast.Node // the mapping itself
	entries map[string]*ast.MappingValueNode
	order   []string // keys as written
	known   []string // keys that getters asked for
}

// has reports whether the key is there, whatever its value.
func (s *section) has(key string) bool { return s.entries[key] != nil }

// problem reports what is wrong with a key, at its place or, if it is absent,
// at the section's.
func (s *section) problem(key, format string, args ...any) {
	s.doc.add(s.place(key, Problem{Reason: fmt.Sprintf(format, args...)}))
}

func (s *section) place(key string, p Problem) Problem {
	node := s.node
	if e := s.entries[key]; e != nil {
		node = e.Key
	}
	p.Key, p.part = join(s.path, key), s.part
	return at(node, p)
}

func join(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}

// take returns the value of a key. One that is there without a value is
// reported, since it is neither absent nor set.
func (s *section) take(key string) (ast.Node, bool) {
	s.known = append(s.known, key)
	e := s.entries[key]
	if e == nil {
		return nil, false
	}
	if _, null := e.Value.(*ast.NullNode); null {
		s.problem(key, "has no value; write one, or remove the key for the default")
		return nil, false
	}
	return e.Value, true
}

func (s *section) text(key string, dst *string) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	value, ok := scalar(n)
	switch {
	case !ok:
		s.problem(key, "must be text; put it in quotes%s", special(n))
	case strings.TrimSpace(value) == "":
		s.problem(key, "is empty; write a value, or remove the key for the default")
	default:
		*dst = value
		return true
	}
	return false
}

// scalar is the text of a string or a block of text.
func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	}
	return "", false
}

func (s *section) whole(key string, dst *int, least, most int) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	_, isInt := n.(*ast.IntegerNode)
	value, err := strconv.Atoi(strings.ReplaceAll(n.GetToken().Value, "_", ""))
	if !isInt || err != nil || value < least || value > most {
		s.problem(key, "must be a whole number from %d to %d%s", least, most, special(n))
		return false
	}
	*dst = value
	return true
}

func (s *section) number(key string, dst *float64, least, most float64) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	value, err := strconv.ParseFloat(n.GetToken().Value, 64)
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || value < least || value > most {
		s.problem(key, "must be a number from %g to %g%s", least, most, special(n))
		return false
	}
	*dst = value
	return true
}

func (s *section) flag(key string, dst *bool) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		s.problem(key, "must be true or false%s", special(n))
		return false
	}
	*dst = b.Value
	return true
}

// off is how a limit is switched off. Zero is refused, since it could mean "at
// once" as well as "never".
const off = "off"

// duration takes a time with its unit. Zero becomes the destination only for
// off, which is taken where mayBeOff says so.
func (s *section) duration(key string, dst *time.Duration, least, most time.Duration, mayBeOff bool) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	orOff := ""
	if mayBeOff {
		orOff = ", or off"
	}
	text, _ := scalar(n)
	if mayBeOff && text == off {
		*dst = 0
		return true
	}
	value, err := time.ParseDuration(text)
	if err != nil || value < least || value > most {
		s.problem(key, "must be a time with its unit, such as 20s, from %s to %s%s%s", short(least), short(most), orOff, special(n))
		return false
	}
	*dst = value
	return true
}

// short writes 5m for what the standard library calls 5m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// choice takes one of some words.
func choice[T ~string](s *section, key string, dst *T, options ...T) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	text, _ := scalar(n)
	if !slices.Contains(options, T(text)) {
		s.problem(key, "must be %s%s", alternatives(options), special(n))
		return false
	}
	*dst = T(text)
	return true
}

// alternatives is "a, b or c".
func alternatives[T ~string](options []T) string {
	var b strings.Builder
	for i, o := range options {
		switch {
		case i > 0 && i == len(options)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(o))
	}
	return b.String()
}

// texts takes a list of different texts.
func (s *section) texts(key string, dst *[]string) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		s.problem(key, "must be a list in brackets with at least one entry%s", special(n))
		return false
	}
	var list []string
	for _, v := range seq.Values {
		text, ok := scalar(v)
		if !ok || text == "" || slices.Contains(list, text) {
			s.problem(key, "must be a list of different texts%s", special(v))
			return false
		}
		list = append(list, text)
	}
	*dst = list
	return true
}

// durations takes a list of times with their units.
func (s *section) durations(key string, dst *[]time.Duration, least, most time.Duration) bool {
	n, ok := s.take(key)
	if !ok {
		return false
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 || len(seq.Values) > mostDurations {
		s.problem(key, "must be a list in brackets of 1 to %d times, such as [5s, 15s]%s", mostDurations, special(n))
		return false
	}
	var list []time.Duration
	for _, v := range seq.Values {
		text, _ := scalar(v)
		value, err := time.ParseDuration(text)
		if err != nil || value < least || value > most {
			s.problem(key, "must hold times with their unit, such as 20s, from %s to %s%s", short(least), short(most), special(v))
			return false
		}
		list = append(list, value)
	}
	*dst = list
	return true
}

const mostDurations = 20

// sub takes a mapping; nil when it is absent or refused.
func (s *section) sub(key string) *section {
	n, ok := s.take(key)
	if !ok {
		return nil
	}
	return s.doc.mapping(n, join(s.path, key), s.part)
}

// subs takes a mapping of names to mappings, in the order written. Each becomes
// a part of its own if kind is not empty.
func (s *section) subs(key, kind string) []*section {
	outer := s.sub(key)
	if outer == nil {
		return nil
	}
	var list []*section
	for _, name := range outer.order {
		part := outer.part
		if kind != "" {
			part = kind + "." + name
		}
		value := outer.entries[name].Value
		if _, null := value.(*ast.NullNode); null { // "echo:" is an entry with all defaults
			value = &ast.MappingNode{BaseNode: &ast.BaseNode{}, Start: value.GetToken()}
		}
		if inner := s.doc.mapping(value, join(outer.path, name), part); inner != nil {
			inner.name, inner.node = name, outer.entries[name].Key
			list = append(list, inner)
		}
	}
	return list
}

// items takes a list of mappings.
func (s *section) items(key string) []*section {
	n, ok := s.take(key)
	if !ok {
		return nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		s.problem(key, "must be a list%s", special(n))
		return nil
	}
	var list []*section
	for i, v := range seq.Values {
		if item := s.doc.mapping(v, fmt.Sprintf("%s[%d]", join(s.path, key), i), s.part); item != nil {
			list = append(list, item)
		}
	}
	return list
}

// end reports every key that no getter asked for.
func (s *section) end() {
	for _, key := range s.order {
		if slices.Contains(s.known, key) {
			continue
		}
		reason := "unknown key"
		if key == "<<" {
			reason = "anchors and aliases are not taken, write the value out"
		} else if guess := nearest(key, s.known); guess != "" {
			reason += "; did you mean " + guess + "?"
		} else {
			slices.Sort(s.known)
			reason += "; known here are " + strings.Join(slices.Compact(s.known), ", ")
		}
		s.problem(key, "%s", reason)
	}
}
