package kv

import (
	"fmt"
	"strings"
	"time"

	"github.com/llmbus/llmbus/subjects"
)

// Flag is one switch as it is set.
type Flag struct {
	Key    string // as in the bucket, escaped
	On     bool
	Now    bool   // "off now": what is in flight is stopped too
	By     string // who set it, if the value says so
	Reason string // free text

	// Unrecognised is true for a value that is none of the words. It counts as
	// off: whoever wrote it wanted something to stop.
	Unrecognised bool

	Revision uint64    // 0 in a set made by ParseFlags
	Set      time.Time // by the server's clock
}

// words of a flag's value, in lower case.
var words = map[string]bool{"on": true, "true": true, "1": true, "off": false, "false": false, "0": false}

// parseFlag reads a value:
//
//	(on|true|1|off|false|0) [now] [@who] [reason]
//
// "now" has a meaning after an off word only. Case and the white space around
// and between do not matter. What does not begin with one of the words is off.
func parseFlag(key, value string) Flag {
	word, rest := cutWord(value)
	on, known := words[strings.ToLower(word)]
	f := Flag{Key: key, On: on, Unrecognised: !known}
	if !known {
		return f
	}
	if now, after := cutWord(rest); !on && strings.EqualFold(now, "now") {
		f.Now, rest = true, after
	}
	if who, after := cutWord(rest); strings.HasPrefix(who, "@") {
		f.By, rest = who[1:], after
	}
	f.Reason = rest
	return f
}

// value is the text that parseFlag reads back.
func (f Flag) value() (string, error) {
	if strings.ContainsFunc(f.By, isSpace) {
		return "", fmt.Errorf("flag %s: who must be one word, not %q", f.Key, f.By)
	}
	if f.On && f.Now {
		return "", fmt.Errorf("flag %s: now goes with off only", f.Key)
	}
	text := "off"
	if f.On {
		text = "on"
	}
	if f.Now {
		text += " now"
	}
	if f.By != "" {
		text += " @" + f.By
	}
	text = strings.TrimSpace(text + " " + strings.TrimSpace(f.Reason))
	if back := parseFlag(f.Key, text); back.Now != f.Now || back.By != f.By {
		return "", fmt.Errorf("flag %s: the reason must not begin with \"now\" or \"@\"", f.Key)
	}
	return text, nil
}

// cutWord splits s after its first word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexFunc(s, isSpace); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

func isSpace(r rune) bool { return strings.ContainsRune(" \t\r\n\v\f", r) }

// Keys of the flags. Names may be any text.

// AllKey switches every request.
const AllKey = "all"

// FeatureKey switches one feature.
func FeatureKey(feature string) string { return "feature." + subjects.Escape(feature) }

// ProviderKey switches every model of one provider.
func ProviderKey(provider string) string { return "provider." + subjects.Escape(provider) }

// ModelKey switches one model of one provider.
func ModelKey(provider, model string) string {
	return "model." + subjects.Escape(provider) + "." + subjects.Escape(model)
}

// TenantKey switches one tenant.
func TenantKey(tenant string) string { return "tenant." + subjects.Escape(tenant) }

// FeatureTenantKey switches one feature for one tenant.
func FeatureTenantKey(feature, tenant string) string {
	return FeatureKey(feature) + ".tenant." + subjects.Escape(tenant)
}

// FailoverKey switches automatic failover: of a feature for a tenant, of a
// feature if tenant is empty, of everything if both are.
func FailoverKey(feature, tenant string) string {
	switch {
	case feature == "":
		return "failover"
	case tenant == "":
		return "failover." + subjects.Escape(feature)
	}
	return "failover." + subjects.Escape(feature) + ".tenant." + subjects.Escape(tenant)
}

// scope is what a key switches.
type scope string

const (
	scopeAll           scope = "all"
	scopeFeature       scope = "feature"
	scopeProvider      scope = "provider"
	scopeModel         scope = "model"
	scopeTenant        scope = "tenant"
	scopeFeatureTenant scope = "feature.tenant"
	scopeFailover      scope = "failover"
)

// pair names what a flag is about: feature and tenant, or provider and model.
// What a scope does not have is empty.
type pair struct{ a, b string }

// parseKey reads a key of the bucket.
func parseKey(key string) (scope, pair, error) {
	tokens := strings.Split(key, ".")
	names := make([]string, len(tokens))
	for i, token := range tokens {
		var ok bool
		if names[i], ok = subjects.Unescape(token); !ok {
			return "", pair{}, fmt.Errorf("flag %q: %q is not an escaped name", key, token)
		}
	}
	n := len(tokens)
	switch head := tokens[0]; {
	case head == "all" && n == 1:
		return scopeAll, pair{}, nil
	case (head == "feature" || head == "provider" || head == "tenant") && n == 2:
		return scope(head), pair{names[1], ""}, nil
	case head == "model" && n == 3:
		return scopeModel, pair{names[1], names[2]}, nil
	case head == "feature" && n == 4 && tokens[2] == "tenant":
		return scopeFeatureTenant, pair{names[1], names[3]}, nil
	case head == "failover" && n == 1:
		return scopeFailover, pair{}, nil
	case head == "failover" && n == 2:
		return scopeFailover, pair{names[1], ""}, nil
	case head == "failover" && n == 4 && tokens[2] == "tenant":
		return scopeFailover, pair{names[1], names[3]}, nil
	}
	return "", pair{}, fmt.Errorf("flag %q: not one of all, feature.<f>, provider.<p>, model.<p>.<m>, tenant.<t>, feature.<f>.tenant.<t>, failover, failover.<f>, failover.<f>.tenant.<t>", key)
}
