package conformance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/conformance"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
)

const config = `
providers:
  echo:
  slow: {kind: ollama, base_url: %s}
features:
  quick: {targets: [{provider: echo, model: echo}]}
  slow: {targets: [{provider: slow, model: sim-slow-first-20s}]}
`

// startWorker runs our own worker and returns a connection beside it.
func startWorker(t *testing.T) *nats.Conn {
	t.Helper()
	srv := natstest.ListenServer(t)
	env := app.Defaults(srv.ClientURL())
	env.ShutdownGrace = time.Second
	ctx, stop := context.WithCancel(context.Background())
	ready := make(chan struct{})
	var running sync.WaitGroup
	var err error
	a := app.New(env, app.Options{Version: "1.2.3", Config: fmt.Appendf(nil, config, simtest.Start(t).URL()), Ready: func() { close(ready) }})
	running.Go(func() { err = a.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		require.NoError(t, err)
	})
	select {
	case <-ready:
	case <-time.After(time.Minute):
		require.Fail(t, "the worker is not ready within a minute")
	}
	return srv.Dial()
}

// results collects what a run tells.
type results map[string]conformance.Result

func (r results) tell(one conformance.Result) { r[one.Name] = one }

// requirePassed demands that all passed, apart from what may be left out.
func (r results) requirePassed(t *testing.T, leftOut ...string) {
	t.Helper()
	require.NotEmpty(t, r)
	for name, one := range r {
		require.NoError(t, one.Err, name)
		if one.LeftOut != "" {
			require.Contains(t, leftOut, one.LeftOut, name)
		}
	}
}
