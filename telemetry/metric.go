package telemetry

import "go.opentelemetry.io/otel/attribute"

// Kind is what a metric measures.
type Kind string

// Kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric describes one metric.
type Metric struct {
	Name       string
	Kind       Kind
	Unit       string // as UCUM writes it
	Help       string
	Attributes []attribute.Key // the most that it has
}

// Attributes of metrics and spans that OpenTelemetry names.
const (
	keyOperation     = attribute.Key("gen_ai.operation.name")
	keyProviderName  = attribute.Key("gen_ai.provider.name")
	keyRequestModel  = attribute.Key("gen_ai.request.model")
	keyResponseModel = attribute.Key("gen_ai.response.model")
	keyTokenType     = attribute.Key("gen_ai.token.type")
	keyErrorType     = attribute.Key("error.type") // absent from what went well
)

// Those of HTTP.
const (
	keyMethod = attribute.Key("http.request.method")
	keyRoute  = attribute.Key("http.route") // absent where no route matched
	keyStatus = attribute.Key("http.response.status_code")
	keyScheme = attribute.Key("url.scheme")
)

// Our own attributes.
const (
	keyFeature  = attribute.Key("llmbus.feature")
	keyProvider = attribute.Key("llmbus.provider") // as the configuration names it
	keyClass    = attribute.Key("llmbus.class")
	keyServedBy = attribute.Key("llmbus.served_by") // absent where nothing served
	keyFallback = attribute.Key("llmbus.fallback")
	keyOutcome  = attribute.Key("llmbus.outcome")
	keyLimit    = attribute.Key("llmbus.limit")
	keyTenant   = attribute.Key("llmbus.tenant") // hashed, or other
	keyState    = attribute.Key("llmbus.state")
	keyScope    = attribute.Key("llmbus.scope")
	keyWorker   = attribute.Key("llmbus.worker")
	keyVersion  = attribute.Key("llmbus.version")
)

// Of each request.
var (
	requests = Metric{"llmbus.requests", Counter, "{request}",
		"Requests of known features that ended.", keys(keyFeature, keyClass, keyServedBy, keyErrorType)}
	requestDuration = Metric{"llmbus.request.duration", Histogram, "s",
		"Time of a whole request at the worker, failover included.", keys(keyFeature, keyServedBy, keyErrorType)}
	requestFirstToken = Metric{"llmbus.request.time_to_first_token", Histogram, "s",
		"Time until the first token of a streamed answer, failover included.", keys(keyFeature)}
	failovers = Metric{"llmbus.failovers", Counter, "{failover}",
		"Moves to another target, counted at the target that failed.", keys(keyFeature, keyProvider, keyRequestModel, keyErrorType)}
	failoverOutcomes = Metric{"llmbus.failover.outcomes", Counter, "{request}",
		"Requests that asked more than one target: whether one of them served.", keys(keyFeature, keyOutcome)}
	fallbacks = Metric{"llmbus.fallbacks", Counter, "{request}",
		"Requests answered by a fallback, by its mode and by what led to it.", keys(keyFeature, keyFallback, keyServedBy)}
	limitsExceeded = Metric{"llmbus.limits.exceeded", Counter, "{request}",
		"Requests that did not fit a limit of their tenant, by its name.", keys(keyFeature, keyLimit, keyErrorType)}
	tenantRequests = Metric{"llmbus.tenant.requests", Counter, "{request}",
		"Requests of a tenant that ended.", keys(keyTenant)}
	tenantTokens = Metric{"llmbus.tenant.tokens", Counter, "{token}",
		"Tokens of a tenant, of all its calls.", keys(keyTenant, keyTokenType)}
	tenantCost = Metric{"llmbus.tenant.cost.usd", Counter, "{USD}",
		"Cost of a tenant in US dollars, of all its calls.", keys(keyTenant)}
)

// Of each call to a provider.
var (
	callDuration = Metric{"gen_ai.client.operation.duration", Histogram, "s",
		"Time of one call to a provider.", append(targetKeys(), keyErrorType)}
	callFirstChunk = Metric{"gen_ai.client.operation.time_to_first_chunk", Histogram, "s",
		"Time until the first text of a streamed call.", targetKeys()}
	callTokens = Metric{"gen_ai.client.token.usage", Histogram, "{token}",
		"Tokens of one call, as billed.", append(targetKeys(), keyTokenType)}
	cost = Metric{"llmbus.cost.usd", Counter, "{USD}",
		"Cost of all calls in US dollars, by the prices of the configuration.", keys(keyFeature, keyProvider, keyRequestModel)}
	validationFailures = Metric{"llmbus.validation.failures", Counter, "{call}",
		"Answers refused because they are empty or do not fit what was asked for.", keys(keyFeature, keyProvider, keyRequestModel)}
)

// Of the OpenAI door.
var httpDuration = Metric{"http.server.request.duration", Histogram, "s",
	"Time of an HTTP request at the gateway, to the end of its answer.", keys(keyMethod, keyRoute, keyStatus, keyScheme, keyErrorType)}

// Of the worker.
var (
	workerInfo = Metric{"llmbus.worker.info", Gauge, "{worker}",
		"Always 1: which worker this is, and its place in the queue group.", keys(keyWorker, keyVersion, keyState)}
	workerMessages = Metric{"llmbus.worker.messages", Counter, "{request}",
		"Requests that this worker answered, by the code of the error; those refused before a feature was asked included.", keys(keyErrorType)}
	workerInFlight = Metric{"llmbus.worker.in_flight", Gauge, "{request}", "Requests under way.", nil}
	workerSlots    = Metric{"llmbus.worker.slots", Gauge, "{request}", "Requests that this worker takes at once.", nil}
	workerDegraded = Metric{"llmbus.worker.degraded", Gauge, "{state}",
		"1 while KV is out of reach, so that breakers and switches are this worker's own opinion.", nil}
	configRefused = Metric{"llmbus.config.refused", Gauge, "{part}",
		"Parts of the configuration that this worker could not take.", nil}
	breakerState = Metric{"llmbus.breaker.state", Gauge, "{state}",
		"State of a circuit breaker as this worker sees it: 0 closed, 1 cooling, 2 half-open, 3 open.", keys(keyProvider, keyRequestModel)}
	breakerTransitions = Metric{"llmbus.breaker.transitions", Counter, "{transition}",
		"Transitions of circuit breakers, counted at the worker that made them.", keys(keyProvider, keyRequestModel, keyState)}
	switchesOff = Metric{"llmbus.switches.off", Gauge, "{switch}",
		"Kill switches and failover switches that are off, by what they switch.", keys(keyScope)}
	switchFlips = Metric{"llmbus.switch.flips", Counter, "{flip}",
		"Flips of switches that this worker obeyed.", keys(keyScope, keyState)}
	jobsPending = Metric{"llmbus.jobs.pending", Gauge, "{job}", "Background jobs in the queue of the fleet, those in hand included.", nil}
	jobsInHand  = Metric{"llmbus.jobs.in_hand", Gauge, "{job}", "Background jobs that workers have in hand or have put off.", nil}
	jobsDead    = Metric{"llmbus.jobs.dead_letters", Gauge, "{job}", "Background jobs that were given up and are kept as dead letters.", nil}
)

func keys(k ...attribute.Key) []attribute.Key { return k }

func targetKeys() []attribute.Key {
	return keys(keyOperation, keyProviderName, keyRequestModel, keyResponseModel, keyFeature, keyProvider)
}

// Metrics lists all metrics.
func Metrics() []Metric {
	return []Metric{
		requests, requestDuration, requestFirstToken, failovers, failoverOutcomes, fallbacks, limitsExceeded, tenantRequests, tenantTokens, tenantCost,
		callDuration, callFirstChunk, callTokens, cost, validationFailures, httpDuration,
		workerInfo, workerMessages, workerInFlight, workerSlots, workerDegraded, configRefused, breakerState, breakerTransitions, switchesOff, switchFlips,
		jobsPending, jobsInHand, jobsDead,
	}
}

// Boundaries of histograms, those that the conventions ask for.
func seconds() []float64 {
	return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
}

func tokens() []float64 {
	return []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
}
