package subjects

import "strings"

// UsageKey is the key of one total in the llm_usage bucket:
// <day>.<tenant>.<feature>.<provider>.<model>.<worker>. All but the day, which is
// YYYY-MM-DD, are escaped.
func UsageKey(day, tenant, feature, provider, model, worker string) string {
	return strings.Join([]string{day, Escape(tenant), Escape(feature), Escape(provider), Escape(model), Escape(worker)}, ".")
}

// UsageOf matches the keys of one day.
func UsageOf(day string) string { return day + ".>" }

// ParseUsageKey is the inverse of UsageKey. ok is false for any other key.
func ParseUsageKey(key string) (day string, parts [5]string, ok bool) {
	day, rest, _ := strings.Cut(key, ".")
	tokens := strings.Split(rest, ".")
	if day == "" || len(tokens) != len(parts) {
		return "", parts, false
	}
	for i, token := range tokens {
		if parts[i], ok = Unescape(token); !ok {
			return "", parts, false
		}
	}
	return day, parts, true
}
