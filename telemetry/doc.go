// Package telemetry makes metrics and traces of what a worker does.
//
// A Telemetry goes along with requests as a chain.Follower, hears of breakers
// and switches from whoever follows those, and asks the worker for the rest when
// its metrics are read:
//
//	chain ──follows──► Telemetry ──► /metrics (Prometheus)
//	breakers, flags ─►    │  ▲  └──► OTLP, where OTEL_EXPORTER_OTLP_ENDPOINT says
//	                      │  │
//	                spans │  └─asks── slots, breakers, queue
//	                      ▼
//	                    OTLP
//
// Names are those of OpenTelemetry's conventions for generative AI where these
// have one, and begin with llmbus otherwise. Metrics lists them all.
//
// Invariants:
//   - Nothing of a prompt, an answer, a tool call, a key or a provider's body is
//     ever recorded, nor the name of a tenant: it is hashed.
//   - No caller can make metrics grow. Features, providers and models are those
//     of the configuration, everything else is a fixed word, and what is chosen
//     by callers or providers (tenants, model versions) gets a bounded number of
//     labels; the rest is "other".
//   - Nothing waits: exporters that fail drop what they have, and say so in the
//     log once until they work again.
//   - Metrics count the requests that a worker served itself. One that shares
//     another's call by its idempotency key is counted with the worker's
//     messages alone.
package telemetry
