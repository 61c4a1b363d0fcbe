package subjects

// AuditStream holds a record of how each request was routed.
const AuditStream = "LLM_AUDIT"

const auditPrefix = "llm.audit."

// Audits matches the records of all features.
const Audits = auditPrefix + ">"

// Audit is the subject of the records of a feature.
func Audit(feature string) string { return auditPrefix + feature }
