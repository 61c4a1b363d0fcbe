package subjects

import (
	"strconv"
	"strings"
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

// JobOf is Job with the tenant, if there is one, as an account import maps it.
func JobOf(feature, tenant string) string {
	if tenant == "" {
		return Job(feature)
	}
	return Job(feature) + "." + tenant
}

// ParseJob splits the subject of a job, with the rules of ParseComplete.
func ParseJob(subject string) (feature, tenant string, ok bool) {
	rest, ok := strings.CutPrefix(subject, jobPrefix)
	if !ok {
		return "", "", false
	}
	return ParseComplete(completePrefix + rest)
}

// JobKey is the id of a job as the tokens that end its subjects and as its key
// in the llm_jobs bucket: <job-id>, or <tenant>.<job-id>. Both are escaped.
func JobKey(tenant, id string) string {
	if tenant == "" {
		return Escape(id)
	}
	return Escape(tenant) + "." + Escape(id)
}

// Result is the subject of a job's answer.
func Result(tenant, id string) string { return resultPrefix + JobKey(tenant, id) }

// DeadLetter is the subject of a job that was given up. feature may be * for
// any.
func DeadLetter(feature, tenant, id string) string {
	return deadPrefix + feature + "." + JobKey(tenant, id)
}

// DeadLetterOf is where the dead letter of a job will be if it gets one, by the
// subject of its answer.
func DeadLetterOf(result string) string {
	return deadPrefix + "*." + strings.TrimPrefix(result, resultPrefix)
}

// DeadLetters are those of one feature.
func DeadLetters(feature string) string { return deadPrefix + feature + ".>" }

// JobOfSequence is the id of a job whose publisher gave none: its number in the
// LLM_JOBS stream, which the publisher's acknowledgement tells.
func JobOfSequence(sequence uint64) string { return "job-" + strconv.FormatUint(sequence, 10) }
