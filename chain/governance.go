package chain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/llm"
)

// classify settles the data class of a request: its own, or the feature's, or
// the most sensitive there is; and never one below the feature's minimum. A
// class that nobody declared stays as it is, and is refused by capable.
func (f *Feature) classify(req *llm.Request) {
	asked := req.DataClass
	req.DataClass = cmp.Or(asked, f.DataClass, f.MinDataClass)
	if len(f.DataClasses) == 0 {
		return
	}
	if req.DataClass == "" {
		req.DataClass = f.DataClasses[len(f.DataClasses)-1]
	}
	rank, least := slices.Index(f.DataClasses, req.DataClass), slices.Index(f.DataClasses, f.MinDataClass)
	if rank < 0 || rank >= least {
		return
	}
	req.DataClass = f.MinDataClass
	if asked != "" {
		req.Warnings = append(slices.Clip(req.Warnings), "data_class "+asked+" was raised to "+f.MinDataClass+", the least that the feature "+f.Name+" takes")
	}
}

// declared reports whether a data class exists. Where none is declared, any may
// be named, and the targets that are approved for it decide.
func (f *Feature) declared(class string) bool {
	return len(f.DataClasses) == 0 || slices.Contains(f.DataClasses, class)
}

// forbids says why a target may not see the data of a request. It looks at
// nothing but what is declared: an empty reason is the only way to a call.
func (f *Feature) forbids(t *Target, class string) (why Skip, detail string) {
	switch {
	case !f.declared(class):
		return SkipNotApproved, "undeclared"
	case class != "" && !slices.Contains(t.Can.ApprovedFor, class):
		return SkipNotApproved, class
	}
	if len(f.Regions) == 0 {
		return "", ""
	}
	outside := func(region string) bool { return !slices.Contains(f.Regions, region) }
	if len(t.Can.Regions) == 0 || slices.ContainsFunc(t.Can.Regions, outside) {
		return SkipRegion, strings.Join(t.Can.Regions, ", ")
	}
	return "", ""
}
