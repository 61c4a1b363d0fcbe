package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// Result is what became of one check.
type Result struct {
	Name    string
	Err     error  // nil: passed, or left out
	LeftOut string // why it was not made
}

// String is one line for people.
func (r Result) String() string {
	switch {
	case r.LeftOut != "":
		return fmt.Sprintf("-      %s: left out: %s", r.Name, r.LeftOut)
	case r.Err != nil:
		return fmt.Sprintf("not ok %s: %v", r.Name, r.Err)
	}
	return "ok     " + r.Name
}

// leftOut is why a check could not be made.
type leftOut string

func (l leftOut) Error() string { return string(l) }

// check is one thing that is judged.
type check struct {
	name string
	run  func(context.Context) error
}

// runAll makes the checks whose name matches, one after another, and tells the
// result of each at once. It ends early with ctx only.
func runAll(ctx context.Context, checks []check, match *regexp.Regexp, tell func(Result)) error {
	for _, c := range checks {
		if match != nil && !match.MatchString(c.name) {
			continue
		}
		r := Result{Name: c.name, Err: c.run(ctx)}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if why, ok := errors.AsType[leftOut](r.Err); ok {
			r.Err, r.LeftOut = nil, string(why)
		}
		tell(r)
	}
	return nil
}
