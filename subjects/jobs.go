package subjects

import (
	"cmp"
	"strconv"
)

// Names of the streams of jobs, and what they hold.
const (
	JobsStream    = "LLM_JOBS"
	ResultsStream = "LLM_RESULTS"
	DeadStream    = "LLM_DEAD"

	Jobs    = "llm.jobs.>"    // llm.jobs.<feature>, or with the tenant behind it as an account import maps it
	Results = "llm.results.>" // llm.results.<job-id>
	Dead    = "llm.dead.>"    // llm.dead.<feature>.<job-id>
)

const (
	jobPrefix    = "llm.jobs."
	resultPrefix = "llm.results."
	deadPrefix   = "llm.dead."
)

// Job is the subject that a job of the feature is published to.
func Job(feature string) string { return jobPrefix + feature }

// JobOf is Job with the tenant, if there is one.
func JobOf(feature, tenant string) string { return ofTenant(Job(feature), tenant) }

// ParseJob splits the subject of a job, with the rules of ParseComplete.
func ParseJob(subject string) (feature, tenant string, ok bool) {
	if feature, tenant, ok = parse(subject, jobPrefix); !ok {
		return "", "", false
	}
	return feature, tenant, ValidFeature(feature)
}

// JobKey is the id of a job as the tokens that end its subjects and as its key
// in the llm_jobs bucket: <job-id>, or <tenant>.<job-id>. Both are escaped.
func JobKey(tenant, id string) string { return owned(tenant, id) }

// Result is the subject of a job's answer.
func Result(tenant, id string) string { return resultPrefix + JobKey(tenant, id) }

// ResultOfAnyone is the subject of a job's answer, of whatever tenant.
func ResultOfAnyone(id string) string { return resultPrefix + "*." + Escape(id) }

// DeadLetter is the subject of a job that was given up. feature may be * for
// any.
func DeadLetter(feature, tenant, id string) string {
	return deadPrefix + feature + "." + JobKey(tenant, id)
}

// directGet begins the subjects on which JetStream gives the last message of a
// subject that a stream holds: the whole request is in the subject, so that
// permissions and imports can bind it to a tenant.
const directGet = "$JS.API.DIRECT.GET."

// StoredResult is the subject on which the answer of a job is read when it is
// stored.
func StoredResult(tenant, id string) string {
	return directGet + ResultsStream + "." + Result(tenant, id)
}

// StoredDeadLetter is the same for its dead letter, of whatever feature.
func StoredDeadLetter(tenant, id string) string {
	return directGet + DeadStream + "." + DeadLetter("*", tenant, id)
}

// DeadLetters are those of a feature and a tenant; an empty one is any.
func DeadLetters(feature, tenant string) string {
	feature = cmp.Or(feature, "*")
	if tenant == "" {
		return deadPrefix + feature + ".>"
	}
	return deadPrefix + feature + "." + Escape(tenant) + ".*"
}

// JobOfSequence is the id of a job whose publisher gave none: its number in the
// LLM_JOBS stream, which the publisher's acknowledgement tells.
func JobOfSequence(sequence uint64) string { return "job-" + strconv.FormatUint(sequence, 10) }
