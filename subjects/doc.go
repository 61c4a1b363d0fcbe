// Package subjects is the only place that spells a NATS subject, a header or a
// queue group of llmbus, and the escape that carries free text in one token.
package subjects
