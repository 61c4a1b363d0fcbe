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

// ParseComplete splits the subject of a request. tenant is empty unless an
// account import added it. ok is false for any other subject and for a feature
// whose name is not valid.
func ParseComplete(subject string) (feature, tenant string, ok bool) {
	rest, ok := strings.CutPrefix(subject, completePrefix)
	if !ok {
		return "", "", false
	}
	feature, tenant, hasTenant := strings.Cut(rest, ".")
	if hasTenant && (tenant == "" || strings.Contains(tenant, ".")) {
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

func owned(tenant, requestID string) string {
	if tenant == "" {
		return Escape(requestID)
	}
	return Escape(tenant) + "." + Escape(requestID)
}

// Resume is the subject on which a reader asks for the frames of a resumable
// answer.
func Resume(requestID string) string { return resumePrefix + Escape(requestID) }

// ParseResume splits the subject of a reader. tenant is empty unless an account
// import added it.
func ParseResume(subject string) (requestID, tenant string, ok bool) {
	rest, ok := strings.CutPrefix(subject, resumePrefix)
	if !ok {
		return "", "", false
	}
	token, tenant, hasTenant := strings.Cut(rest, ".")
	if hasTenant && (tenant == "" || strings.Contains(tenant, ".")) {
		return "", "", false
	}
	requestID, ok = Unescape(token)
	return requestID, tenant, ok
}

// Cancel is the subject that stops the request of that id.
func Cancel(requestID string) string { return cancelPrefix + Escape(requestID) }

// ParseCancel returns the request id of a cancel subject.
func ParseCancel(subject string) (requestID string, ok bool) {
	rest, ok := strings.CutPrefix(subject, cancelPrefix)
	if !ok {
		return "", false
	}
	return Unescape(rest)
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
