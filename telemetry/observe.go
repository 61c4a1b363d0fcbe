package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// gauges are those that are asked for when metrics are read.
type gauges struct {
	info, inFlight, slots, degraded, refused, breaker, off, pending, inHand, dead metric.Int64ObservableGauge
	messages                                                                      metric.Int64ObservableCounter
}

// observe has the worker asked whenever metrics are read.
func (t *Telemetry) observe(meter metric.Meter) error {
	m := &maker{Meter: meter}
	g := &gauges{
		info: m.gauge(workerInfo), inFlight: m.gauge(workerInFlight), slots: m.gauge(workerSlots), degraded: m.gauge(workerDegraded),
		refused: m.gauge(configRefused), breaker: m.gauge(breakerState), off: m.gauge(switchesOff),
		pending: m.gauge(jobsPending), inHand: m.gauge(jobsInHand), dead: m.gauge(jobsDead),
	}
	var err error
	g.messages, err = m.Int64ObservableCounter(workerMessages.Name, metric.WithUnit(workerMessages.Unit), metric.WithDescription(workerMessages.Help))
	_, failed := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := t.cfg.Read()
		o.ObserveInt64(g.info, 1, metric.WithAttributes(keyWorker.String(t.cfg.Worker), keyVersion.String(t.cfg.Version), keyState.String(r.State)))
		g.worker(o, &r)
		return nil
	}, g.info, g.inFlight, g.slots, g.degraded, g.refused, g.breaker, g.off, g.pending, g.inHand, g.dead, g.messages)
	return errors.Join(append(m.errs, err, failed)...)
}

func (g *gauges) worker(o metric.Observer, r *Reading) {
	o.ObserveInt64(g.inFlight, int64(r.InFlight))
	o.ObserveInt64(g.slots, int64(r.Slots))
	o.ObserveInt64(g.degraded, one(r.Degraded))
	o.ObserveInt64(g.refused, int64(r.Refused))
	for code, n := range r.Messages {
		o.ObserveInt64(g.messages, n, metric.WithAttributes(present(keyErrorType, code)...))
	}
	for _, b := range r.Breakers {
		o.ObserveInt64(g.breaker, severity(b.State), metric.WithAttributes(keyProvider.String(b.Provider), keyRequestModel.String(b.Model)))
	}
	for scope, n := range r.Off {
		o.ObserveInt64(g.off, int64(n), metric.WithAttributes(keyScope.String(scope)))
	}
	if r.Jobs != nil {
		o.ObserveInt64(g.pending, r.Jobs.Pending)
		o.ObserveInt64(g.inHand, r.Jobs.InHand)
		o.ObserveInt64(g.dead, r.Jobs.Dead)
	}
}

// severity orders the states of a breaker by how little they let through.
func severity(state string) int64 {
	switch state {
	case "cooling":
		return 1
	case "half_open":
		return 2
	case "open":
		return 3
	}
	return 0
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// present leaves an attribute without a value out.
func present(key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return nil
	}
	return []attribute.KeyValue{key.String(value)}
}

// BreakerChanged counts a transition that this process made.
func (t *Telemetry) BreakerChanged(provider, model, to string) {
	t.transitions.Add(context.Background(), 1, metric.WithAttributes(keyProvider.String(provider), keyRequestModel.String(model), keyState.String(to)))
}

// SwitchFlipped counts a flip that this process obeys. scope says what is
// switched, such as feature or provider, and never names it.
func (t *Telemetry) SwitchFlipped(scope string, on bool) {
	state := "off"
	if on {
		state = "on"
	}
	t.flips.Add(context.Background(), 1, metric.WithAttributes(keyScope.String(scope), keyState.String(state)))
}
