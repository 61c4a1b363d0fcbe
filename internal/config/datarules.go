package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/subjects"
)

// mostClasses is more than anybody can tell apart.
const mostClasses = 32

// dataRules are the data classes there are, and what is done for all of them.
type dataRules struct {
	classes []string // from least to most sensitive; empty: data is not classified
	audit   bool
	broken  bool // they are there and cannot be read, so that nothing can be judged by them
}

// readDataRules reads data_rules; s is nil where there are none.
func readDataRules(s *section) dataRules {
	if s == nil {
		return dataRules{}
	}
	before := len(s.doc.problems)
	r := dataRules{audit: true}
	if !s.texts("classes", &r.classes) && !s.has("classes") {
		s.problem("classes", "is missing; list the data classes from least to most sensitive, such as [public, internal, confidential]")
	}
	s.flag("audit", &r.audit)
	s.end()
	if len(r.classes) > mostClasses {
		s.problem("classes", "holds %d data classes; %d are enough", len(r.classes), mostClasses)
	}
	for _, class := range r.classes {
		if !subjects.ValidFeature(class) {
			s.problem("classes", "the name of a data class must be %s", subjects.FeatureRule)
			break
		}
	}
	r.broken = len(s.doc.problems) > before
	return r
}

// check refuses a class that is not declared.
func (b *builder) check(s *section, key, class string) {
	if b.rules.broken || slices.Contains(b.rules.classes, class) {
		return
	}
	reason := fmt.Sprintf("there is no data class %q; known are %s", class, strings.Join(b.rules.classes, ", "))
	if len(b.rules.classes) == 0 {
		reason = "no data classes are declared; list them in data_rules, such as data_rules: {classes: [public, internal]}, or remove it"
	}
	s.doc.add(s.place(key, Problem{Reason: reason, needs: keyDataRules}))
}

// readApproval reads which data may be sent to a provider or a model.
func (b *builder) readApproval(s *section, can *provider.Capabilities) {
	if s.texts("approved_for", &can.ApprovedFor) {
		for _, class := range can.ApprovedFor {
			b.check(s, "approved_for", class)
		}
	}
}

// readClasses reads which data a feature takes.
func (b *builder) readClasses(s *section, f *chain.Feature) {
	f.DataClasses, f.Audit = b.rules.classes, b.rules.audit
	class, least := s.text("data_class", &f.DataClass), s.text("min_data_class", &f.MinDataClass)
	if class {
		b.check(s, "data_class", f.DataClass)
	}
	if least {
		b.check(s, "min_data_class", f.MinDataClass)
	}
	switch {
	case b.rules.broken || len(b.rules.classes) == 0:
	case !class && !least && !s.has("data_class") && !s.has("min_data_class"):
		s.doc.add(s.place("data_class", Problem{needs: keyDataRules, Reason: "is missing; where data is classified, each feature says what its requests hold that name no class: set it to one of " + strings.Join(b.rules.classes, ", ")}))
	case class && least && slices.Index(b.rules.classes, f.DataClass) < slices.Index(b.rules.classes, f.MinDataClass):
		s.problem("data_class", "is less sensitive than min_data_class; set one of them alone, or raise it")
	}
}

// judgeGovernance refuses a feature whose own data may go to none of its
// targets, or whose targets process data elsewhere than it demands.
func judgeGovernance(s *section, f *chain.Feature) {
	key, class := "data_class", cmp.Or(f.DataClass, f.MinDataClass)
	if f.DataClass == "" {
		key = "min_data_class"
	}
	if slices.Contains(f.DataClasses, class) && count(f, func(t *chain.Target) bool { return slices.Contains(t.Can.ApprovedFor, class) }) == 0 {
		s.problem(key, "no target is approved for it; add it to approved_for of a provider or model")
	}
	for i := range f.Targets {
		t := &f.Targets[i]
		outside := slices.ContainsFunc(t.Can.Regions, func(r string) bool { return !slices.Contains(f.Regions, r) })
		if len(f.Regions) > 0 && (outside || len(t.Can.Regions) == 0) {
			s.problem("regions", "%s/%s is not declared to process data there and nowhere else; set regions of the provider or model, or remove the target",
				t.Provider, t.Model)
		}
	}
}
