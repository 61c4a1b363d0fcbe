package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one setting that cannot apply.
type Problem struct {
	Source string // the file, or the bucket and key, that holds the setting
	Line   int    // from 1; 0 is unknown
	Column int    // from 1
	Key    string // path of the setting, such as features.support.targets[0].model; empty is the whole source
	Reason string // what is wrong and what to write instead; holds no secret

	part  string // key of the bucket that holds the setting
	needs string // key of the bucket whose absence is the problem, if it is
}

// String is "source:line:column: key: reason", as editors understand it.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	return b.String() + ": " + p.Reason
}

// Error is a configuration that was refused, with all that is wrong with it.
type Error struct{ Problems []Problem }

// Error has a line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// refuse makes an error of problems, nil of none. They are put in the order of
// their places.
func refuse(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{problems}
}
