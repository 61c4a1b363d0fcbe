package subjects

import (
	"strconv"
	"strings"
)

// What workers tell each other of limits.
const (
	LimitRecall  = "llm.limits.recall" // somebody is short of allowance: who holds some unused gives it back and says so
	LimitAlive   = "llm.limits.alive"  // every worker, every few seconds: its name
	LimitChanges = "llm.kv.limits.>"   // republished by the streams of counters
	SlotChanges  = "llm.kv.slots.>"    // republished by the llm_slots bucket
	SlotPrefix   = "llm.kv.slots."
)

const (
	limitPrefix       = "llm.limits."
	limitChangePrefix = "llm.kv.limits."
)

// LimitStream is the name of the stream that counts what was allowed in windows
// of that length: minute, hour or day.
func LimitStream(window string) string { return "LLM_LIMITS_" + strings.ToUpper(window) }

// LimitCounters are the counters of a stream.
func LimitCounters(window string) string { return limitPrefix + window + ".>" }

// LimitPushes is where a stream of counters republishes them.
func LimitPushes(window string) string { return limitChangePrefix + window + ".>" }

// LimitKey names what is limited: a kind of thing, such as tokens, that one
// tenant may use, over all features or of one. The texts are escaped.
func LimitKey(window, tenant, feature, kind string) string {
	return window + "." + Escape(tenant) + "." + Escape(feature) + "." + kind
}

// LimitCounter is the subject of the counter of one window, by its number.
func LimitCounter(key string, number int64) string {
	return limitPrefix + key + "." + strconv.FormatInt(number, 10)
}

// ParseLimitCounter splits the subject of a counter, or the one that it is
// republished to.
func ParseLimitCounter(subject string) (key string, number int64, ok bool) {
	rest, ok := strings.CutPrefix(subject, limitPrefix)
	if !ok {
		if rest, ok = strings.CutPrefix(subject, limitChangePrefix); !ok {
			return "", 0, false
		}
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(rest[dot+1:], 10, 64)
	return rest[:dot], number, err == nil
}

// ParseLimitKey is the inverse of LimitKey.
func ParseLimitKey(key string) (window, tenant, feature, kind string, ok bool) {
	tokens := strings.Split(key, ".")
	if len(tokens) != 4 {
		return "", "", "", "", false
	}
	tenant, one := Unescape(tokens[1])
	feature, two := Unescape(tokens[2])
	return tokens[0], tenant, feature, tokens[3], one && two
}

// SlotKey is the key, in the llm_slots bucket, of who holds slots of a tenant,
// over all features or of one.
func SlotKey(tenant, feature string) string { return Escape(tenant) + "." + Escape(feature) }

// ParseSlotKey is the inverse of SlotKey.
func ParseSlotKey(key string) (tenant, feature string, ok bool) {
	t, f, found := strings.Cut(key, ".")
	tenant, one := Unescape(t)
	feature, two := Unescape(f)
	return tenant, feature, found && one && two
}
