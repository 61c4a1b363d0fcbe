package subjects

import (
	"regexp"
	"strings"
)

// Queue is the group in which all workers share the requests.
const Queue = "llm-workers"

// Wildcards that workers and watchers subscribe to.
const (
	Requests       = "llm.complete.*"   // a request: llm.complete.<feature>
	TenantRequests = "llm.complete.*.*" // as an account import maps it: llm.complete.<feature>.<tenant>
	Cancels        = "llm.cancel.*"
	TenantCancels  = "llm.cancel.*.*" // as an account import maps it: llm.cancel.<request-id>.<tenant>
	Resumes        = "llm.resume.*"   // a reader who comes back: llm.resume.<request-id>
	TenantResumes  = "llm.resume.*.*" // as an account import maps it: llm.resume.<request-id>.<tenant>
	Replays        = "llm.replay.>"   // frames of resumable answers, which JetStream keeps
	Failures       = "llm.failures.>"
	Events         = "llm.events.>"
	BreakerChanges = "llm.kv.breakers.>" // republished by the llm_breakers bucket
	FlagChanges    = "llm.kv.flags.>"    // republished by the llm_flags bucket
	FeatureChanges = "llm.kv.features.>" // republished by the llm_features bucket
	Status         = "llm.status"        // micro endpoint: this worker's state
)

// Prefixes of the subjects above, for buckets that republish their changes.
const (
	BreakerPrefix = "llm.kv.breakers."
	FlagPrefix    = "llm.kv.flags."
	FeaturePrefix = "llm.kv.features."
)

const (
	completePrefix = "llm.complete."
	streamPrefix   = "llm.stream."
	replayPrefix   = "llm.replay."
	resumePrefix   = "llm.resume."
	cancelPrefix   = "llm.cancel."
	failurePrefix  = "llm.failures."
	eventPrefix    = "llm.events."
	followPrefix   = "llm.follow."
)

// Complete is the subject that a request to the feature is published to.
func Complete(feature string) string { return completePrefix + feature }

// CompleteOf is Complete with the tenant, if there is one.
func CompleteOf(feature, tenant string) string { return ofTenant(Complete(feature), tenant) }

// ParseComplete splits the subject of a request. tenant is empty unless the
// subject has one. ok is false for any other subject, and for a feature or a
// tenant whose name is not valid.
func ParseComplete(subject string) (feature, tenant string, ok bool) {
	if feature, tenant, ok = parse(subject, completePrefix); !ok {
		return "", "", false
	}
	return feature, tenant, ValidFeature(feature)
}

// Stream is the subject that the frames of one answer go to. With a tenant it
// is llm.stream.<tenant>.<request-id>. Both are escaped.
func Stream(tenant, requestID string) string { return streamPrefix + owned(tenant, requestID) }

// Replay is the subject on which the frames of one resumable answer are kept.
// With a tenant it is llm.replay.<tenant>.<request-id>. Both are escaped.
func Replay(tenant, requestID string) string { return replayPrefix + owned(tenant, requestID) }

// Resume is the subject on which a reader asks for the frames of a resumable
// answer.
func Resume(requestID string) string { return resumePrefix + Escape(requestID) }

// ResumeOf is Resume with the tenant, if there is one.
func ResumeOf(requestID, tenant string) string { return ofTenant(Resume(requestID), tenant) }

// ParseResume splits the subject of a reader. tenant is empty unless the subject
// has one.
func ParseResume(subject string) (requestID, tenant string, ok bool) {
	return parseID(subject, resumePrefix)
}

// Cancel is the subject that stops the request of that id.
func Cancel(requestID string) string { return cancelPrefix + Escape(requestID) }

// CancelOf is Cancel with the tenant, if there is one: it stops a request of
// that tenant only.
func CancelOf(requestID, tenant string) string { return ofTenant(Cancel(requestID), tenant) }

// ParseCancel splits a cancel subject. tenant is empty unless the subject has
// one.
func ParseCancel(subject string) (requestID, tenant string, ok bool) {
	return parseID(subject, cancelPrefix)
}

// Failure is the subject on which one failure of a provider is announced. key
// is a breaker key, whose tokens are escaped already.
func Failure(key string) string { return failurePrefix + key }

// ParseFailure returns the breaker key of a failure subject.
func ParseFailure(subject string) (key string, ok bool) {
	return strings.CutPrefix(subject, failurePrefix)
}

// Follow is the subject on which a worker lets others follow a call of its own.
func Follow(worker string) string { return followPrefix + Escape(worker) }

// Event is the subject that an event of that name goes to.
func Event(name string) string { return eventPrefix + name }

var feature = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// FeatureRule says in words what ValidFeature accepts.
const FeatureRule = "1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"

// ValidFeature reports whether name can be a feature; see FeatureRule.
func ValidFeature(name string) bool { return feature.MatchString(name) }

// MaxRequestID is the longest request id in bytes.
const MaxRequestID = 128

// ValidRequestID reports whether a caller's id may be used: 1 to MaxRequestID
// printable ASCII characters without space. Other ids are refused, not
// repaired, since the caller listens on a subject made from it.
func ValidRequestID(id string) bool {
	if id == "" || len(id) > MaxRequestID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
