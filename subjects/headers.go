package subjects

// Headers of requests and replies. NATS header names keep their case.
const (
	HeaderRequestID   = "Llm-Request-Id"
	HeaderTimeoutMS   = "Llm-Timeout-Ms" // remaining time in ms: relative, so that no two clocks are compared
	HeaderPingMS      = "Llm-Ping-Ms"    // longest silence the caller wants, in ms
	HeaderFromSeq     = "Llm-From-Seq"   // first frame that a reader who comes back wants
	HeaderTenant      = "Llm-Tenant"     // a claim, trusted in single-tenant mode only
	HeaderClass       = "Llm-Class"
	HeaderTraceParent = "traceparent" // W3C trace context
	HeaderProvider    = "Llm-Provider"
	HeaderServedBy    = "Llm-Served-By"
	HeaderRetryAfter  = "Retry-After" // seconds, rounded up

	// Of jobs.
	HeaderReplyTo   = "Llm-Reply-To"   // inbox that gets the end of a job besides the stream; JetStream keeps no reply subject
	HeaderExpiresMS = "Llm-Expires-Ms" // how long after its publication a job is given up
	HeaderReplay    = "Llm-Replay"     // how often the job was replayed from a dead letter
	HeaderMsgID     = "Nats-Msg-Id"    // JetStream's own: a second message of the same id is dropped

	// The two that every NATS micro client reads an error from.
	HeaderError     = "Nats-Service-Error"
	HeaderErrorCode = "Nats-Service-Error-Code"

	// How the server itself reports, in an empty message, that nobody listens to a
	// subject that a request was published to.
	HeaderStatus       = "Status"
	StatusNoResponders = "503"
)
