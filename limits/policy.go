package limits

import (
	"errors"
	"fmt"
)

// Policy says what tenants may use. The zero value limits nobody.
type Policy struct {
	Tenants  Rules            // over all features
	Features map[string]Rules // on one feature, besides
}

// Rules are the limits of every tenant. A fleet with one tenant, whose name is
// empty, is under the default.
type Rules struct {
	Default []Limit
	Tenants map[string][]Limit // of those that differ, whole
}

// of is what holds for a tenant.
func (r Rules) of(tenant string) []Limit {
	if own, ok := r.Tenants[tenant]; ok {
		return own
	}
	return r.Default
}

func (r Rules) empty() bool {
	if len(r.Default) > 0 {
		return false
	}
	for _, own := range r.Tenants {
		if len(own) > 0 {
			return false
		}
	}
	return true
}

// Empty reports whether nobody is limited.
func (p *Policy) Empty() bool {
	if !p.Tenants.empty() {
		return false
	}
	for _, r := range p.Features {
		if !r.empty() {
			return false
		}
	}
	return true
}

// NameTenants reports whether some tenant has limits of its own.
func (p *Policy) NameTenants() bool {
	if len(p.Tenants.Tenants) > 0 {
		return true
	}
	for _, r := range p.Features {
		if len(r.Tenants) > 0 {
			return true
		}
	}
	return false
}

// Validate refuses limits that mean nothing.
func (p *Policy) Validate() error {
	all := []Rules{p.Tenants}
	for _, r := range p.Features {
		all = append(all, r)
	}
	for _, r := range all {
		if err := validate(r.Default); err != nil {
			return err
		}
		for tenant, own := range r.Tenants {
			if err := validate(own); err != nil {
				return fmt.Errorf("tenant %s: %w", tenant, err)
			}
		}
	}
	return nil
}

func validate(list []Limit) error {
	seen := map[string]bool{}
	for _, l := range list {
		switch {
		case l.Amount <= 0:
			return fmt.Errorf("%s must be above 0; leave it out for no limit", l.Name())
		case l.Kind == Concurrent && l.Window != "":
			return errors.New("concurrent has no window")
		case l.Kind != Concurrent && l.Window.Length() == 0:
			return fmt.Errorf("%s needs a window of a minute, an hour or a day", l.Kind)
		case seen[l.Name()]:
			return fmt.Errorf("%s is there twice", l.Name())
		}
		seen[l.Name()] = true
	}
	return nil
}

// scope is whom and what a limit is about.
type scope struct {
	tenant  string
	feature string // empty: all features
}

// scoped is a limit with its scope.
type scoped struct {
	scope
	Limit
}

// of lists what a request of the tenant to the feature must fit.
func (p *Policy) of(tenant, feature string) []scoped {
	var list []scoped
	for _, l := range p.Tenants.of(tenant) {
		list = append(list, scoped{scope{tenant, ""}, l})
	}
	for _, l := range p.Features[feature].of(tenant) {
		list = append(list, scoped{scope{tenant, feature}, l})
	}
	return list
}
