package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

const (
	demoWorkers  = 3
	demoPatience = 25 * time.Second
	demoFeature  = "demo"
)

// demoConfig has two providers, both played by one simulator.
const demoConfig = `breaker: {threshold: 3, window: 10s, cool_down: 1500ms, probe_timeout: 5s}
providers:
  primary: {kind: openai, base_url: %[1]s}
  backup: {kind: anthropic, base_url: %[1]s}
features:
  demo:
    timeout: 5s
    targets:
      - {provider: primary, model: model-a, timeout: 2s}
      - {provider: backup, model: model-b}
`

func newDemo(io streams) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show everything in one process, within half a minute",
		Long: "Demo starts a NATS server, a provider simulator and three workers in this process, on free ports, and shows an answer, a stream,\n" +
			"an outage with failover, the breaker opening for all workers, one probe, recovery and a kill switch. It checks what it shows\n" +
			"and fails if something did not happen. Nothing is left behind.",
		Example: "  broker demo\n  broker demo --verbose",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			log := slog.New(slog.DiscardHandler)
			if verbose {
				log = slog.New(slog.NewTextHandler(io.err, nil))
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), demoPatience, errors.New("the demo took too long; is this machine very busy?"))
			defer cancel()
			return runDemo(ctx, io, log)
		},
	}
	c.Flags().BoolVar(&verbose, "verbose", false, "show the workers' logs on the standard error")
	return c
}

// stage is what the demo plays on.
type stage struct {
	streams
	sim      *sim.Server
	nc       *nats.Conn
	client   *client.Client
	changes  *nats.Subscription // of the primary's breaker
	buckets  *kv.Buckets
	begun    time.Time
	stopping []func()
}

func runDemo(ctx context.Context, io streams, log *slog.Logger) error {
	s := &stage{streams: io, begun: time.Now()}
	defer s.strike()
	if err := s.build(ctx, log); err != nil {
		return err
	}
	s.say("start", "a NATS server, a provider simulator and %d workers in one process, %d ms", demoWorkers, time.Since(s.begun).Milliseconds())
	for _, step := range []func(context.Context) error{
		s.answer, s.streamed, s.outage, s.skipped, s.probed, s.recovered, s.switched,
	} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the demo did not show what it should: %w", err)
		}
	}
	s.say("done", "all of it was checked, in %.1f s; next: %s --help", time.Since(s.begun).Seconds(), command())
	return nil
}

// build starts everything, in the order in which strike must not end it.
func (s *stage) build(ctx context.Context, log *slog.Logger) error {
	dir, err := os.MkdirTemp("", "llmbus-demo-")
	if err != nil {
		return err
	}
	s.later(func() { _ = os.RemoveAll(dir) }) // of the system's folder for such
	server, err := app.NewServer(app.ServerConfig{Addr: "127.0.0.1:0", Dir: dir, Log: log})
	if err != nil {
		return err
	}
	s.later(server.Close)
	if err := s.buildSim(); err != nil {
		return err
	}
	if err := s.buildWorkers(ctx, server.URL(), log); err != nil {
		return err
	}
	return s.buildClient(ctx, server.URL())
}

func (s *stage) buildSim() (err error) {
	if s.sim, err = sim.New(sim.Config{}); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = s.sim.Run(context.Background()) }) // until Close
	s.later(func() { _ = s.sim.Close(); running.Wait() })
	return nil
}

func (s *stage) buildWorkers(ctx context.Context, url string, log *slog.Logger) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	s.later(func() { stop(); running.Wait() })
	ready, died := make(chan struct{}, demoWorkers), make(chan error, demoWorkers)
	for i := range demoWorkers {
		env := app.Defaults(url)
		env.ShutdownGrace, env.WorkerName = time.Second, fmt.Sprintf("demo-%d", i+1)
		worker := app.New(env, app.Options{Version: version, Log: log, Config: fmt.Appendf(nil, demoConfig, s.sim.URL()), Ready: func() { ready <- struct{}{} }})
		running.Go(func() { died <- worker.Run(work) })
	}
	for range demoWorkers {
		select {
		case <-ready:
		case err := <-died:
			return fmt.Errorf("a worker ended: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *stage) buildClient(ctx context.Context, url string) (err error) {
	if s.nc, err = nats.Connect(url); err != nil {
		return natsError{err}
	}
	s.later(s.nc.Close)
	if s.client, err = client.New(s.nc); err != nil {
		return err
	}
	if s.changes, err = s.nc.SubscribeSync(subjects.BreakerPrefix + primaryKey); err != nil {
		return err
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		return err
	}
	s.buckets, err = kv.Bind(ctx, js)
	return err
}

func (s *stage) later(f func()) { s.stopping = append(s.stopping, f) }

// strike ends everything, the newest first.
func (s *stage) strike() {
	for len(s.stopping) > 0 {
		last := len(s.stopping) - 1
		s.stopping[last]()
		s.stopping = s.stopping[:last]
	}
}

// say prints one line of the play.
func (s *stage) say(scene, format string, args ...any) {
	fmt.Fprintf(s.out, "%-9s %s\n", scene, fmt.Sprintf(format, args...))
}
