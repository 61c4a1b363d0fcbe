package telemetry

import (
	"cmp"
	"errors"
	"log/slog"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// DefaultTenants is how many tenants get a label of their own by default.
const DefaultTenants = 50

// MaxTenants bounds Config.Tenants, so that the three metrics of tenants stay
// below maxSeries.
const MaxTenants = 900

// Config of a Telemetry. Every field is optional.
type Config struct {
	Version string // of the program
	Worker  string // the name of this process

	// Read is asked for the state of the worker each time that metrics are read;
	// nil is for a process without a worker.
	Read func() Reading

	// ProviderName gives the conventions' name for a provider of the
	// configuration, such as gcp.gemini. It is asked once for each target.
	ProviderName func(provider string) string

	Tenants int                   // that get a label of their own, up to MaxTenants; 0 means DefaultTenants
	Push    sdkmetric.Exporter    // gets all metrics once a minute, or as OTEL_METRIC_EXPORT_INTERVAL says
	Spans   sdktrace.SpanExporter // gets the spans that are sampled; nil makes none
	Sample  *float64              // share of traces that are sampled where no caller has decided, 0 to 1; nil follows OTEL_TRACES_SAMPLER
	Log     *slog.Logger
}

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Tenants < 0 || c.Tenants > MaxTenants:
		return errors.New("telemetry: Tenants must be 1 to 900")
	case c.Sample != nil && !(*c.Sample >= 0 && *c.Sample <= 1):
		return errors.New("telemetry: Sample must be 0 to 1")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Tenants = cmp.Or(c.Tenants, DefaultTenants)
	if c.ProviderName == nil {
		c.ProviderName = func(name string) string { return name }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Reading is the state of a worker at one instant.
type Reading struct {
	State    string           // its place in the queue group; empty before it has one
	Messages map[string]int64 // answered, by the code of the error; "" for none
	InFlight int
	Slots    int
	Degraded bool
	Refused  int            // parts of the configuration
	Breakers []Breaker      // of the configured targets
	Off      map[string]int // switches that are off, by what they switch
	Jobs     *Jobs          // nil where it is not known
}

// Breaker is one circuit breaker. Model is empty where it guards a provider.
type Breaker struct{ Provider, Model, State string }

// Jobs counts the jobs of the fleet.
type Jobs struct{ Pending, InHand, Dead int64 }
