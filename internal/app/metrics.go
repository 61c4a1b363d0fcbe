package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/llmbus/llmbus/telemetry"
)

const (
	headerPatience = 5 * time.Second // a scraper has for its request
	lastWords      = 5 * time.Second // for what exporters still have at the end
	metricsPattern = "GET /metrics"
)

// newTelemetry makes metrics and traces of this process, or nil where nobody
// would get them.
func (a *App) newTelemetry(ctx context.Context, c telemetry.Config) (*telemetry.Telemetry, error) {
	c.Version, c.Worker, c.Log = a.opts.Version, a.name, a.log
	if err := a.env.exporters(ctx, &c); err != nil {
		return nil, err
	}
	if a.env.Metrics == "" && !a.env.metricsAtDoor() && c.Spans == nil && c.Push == nil {
		return nil, nil
	}
	return telemetry.New(c)
}

// metricsAtDoor reports whether the OpenAI door has /metrics as well: where only
// this machine may come, since who reads metrics is asked for no key.
func (e *Environment) metricsAtDoor() bool {
	return e.HTTP != "" && loopback(httpAddress(e.HTTP)) == nil
}

// serveMetrics lets Prometheus read until ctx ends.
func (a *App) serveMetrics(ctx context.Context, t *telemetry.Telemetry) error {
	if a.env.Metrics == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := net.Listen("tcp", a.env.Metrics)
	if err != nil {
		return fmt.Errorf("LLMBUS_METRICS: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPattern, t.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerPatience}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	a.log.Info("metrics are served", "url", "http://"+listener.Addr().String()+"/metrics")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// endTelemetry sends what is left.
func (a *App) endTelemetry(t *telemetry.Telemetry) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := t.Shutdown(ctx); err != nil {
		a.log.Warn("the last metrics or traces were not sent", "error", err)
	}
}

// measure has t see what comes to the door.
func (d *door) measure(t *telemetry.Telemetry) {
	if t == nil {
		return
	}
	d.server.Around(t.HTTP)
	if d.env.metricsAtDoor() {
		d.server.Handle(metricsPattern, t.Handler())
	}
}

// runAlone serves a door without a worker.
func (d *door) runAlone(ctx context.Context) error {
	t, err := d.newTelemetry(ctx, telemetry.Config{})
	if err != nil {
		return errors.Join(err, d.listener.Close(), d.conn.end())
	}
	defer d.endTelemetry(t)
	d.measure(t)
	return together(ctx, d.run, func(ctx context.Context) error { return d.serveMetrics(ctx, t) })
}
