package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are those that are written to as things happen.
type instruments struct {
	requestCount, failovers, failoverOutcomes, fallbacks, overLimit, validation, transitions, flips, tenantRequests, tenantTokens metric.Int64Counter

	cost, tenantCost                                                   metric.Float64Counter
	requestTime, requestFirstToken, callTime, callFirstChunk, httpTime metric.Float64Histogram
	callTokens                                                         metric.Int64Histogram
}

// maker makes instruments and keeps what went wrong. Names are constants, so
// that an error is a mistake of this package.
type maker struct {
	metric.Meter
	errs []error
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	m := &maker{Meter: meter}
	i := &instruments{
		requestCount: m.count(requests), failovers: m.count(failovers), failoverOutcomes: m.count(failoverOutcomes), fallbacks: m.count(fallbacks),
		overLimit: m.count(limitsExceeded), validation: m.count(validationFailures), transitions: m.count(breakerTransitions), flips: m.count(switchFlips),
		tenantRequests: m.count(tenantRequests), tenantTokens: m.count(tenantTokens),
		cost: m.sum(cost), tenantCost: m.sum(tenantCost),
		requestTime: m.time(requestDuration), requestFirstToken: m.time(requestFirstToken), callTime: m.time(callDuration), callFirstChunk: m.time(callFirstChunk), httpTime: m.time(httpDuration),
		callTokens: m.sizes(callTokens),
	}
	return i, errors.Join(m.errs...)
}

func (m *maker) count(d Metric) metric.Int64Counter {
	c, err := m.Int64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) sum(d Metric) metric.Float64Counter {
	c, err := m.Float64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) time(d Metric) metric.Float64Histogram {
	h, err := m.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help), metric.WithExplicitBucketBoundaries(seconds()...))
	m.errs = append(m.errs, err)
	return h
}

func (m *maker) sizes(d Metric) metric.Int64Histogram {
	h, err := m.Int64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help), metric.WithExplicitBucketBoundaries(tokens()...))
	m.errs = append(m.errs, err)
	return h
}

func (m *maker) gauge(d Metric) metric.Int64ObservableGauge {
	g, err := m.Int64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	m.errs = append(m.errs, err)
	return g
}
