package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/subjects"
)

// binary builds the broker once for all tests of this package.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "llmbus-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "broker")
	out, err := exec.Command("go", "build", "-o", path, "github.com/llmbus/llmbus/cmd/broker").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the broker: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// site is a NATS server, a simulated provider in two dialects, and what the
// workers are told: the feature f asks primary, then backup.
type site struct {
	nats   *natstest.Listener
	sim    *sim.Server
	config string
	caller *nats.Conn
}

const policy = `
breaker: {threshold: 5, window: 30s, cool_down: 500ms, max_cool_down: 500ms, probe_timeout: 1s}
providers:
  primary: {kind: openai, base_url: %[1]s/v1, models: {good: {}}}
  backup: {kind: anthropic, base_url: %[1]s, models: {spare: {}}}
features:
  f:
    timeout: 5s
    targets:
      - {provider: primary, model: good, timeout: 300ms}
      - {provider: backup, model: spare}
  slow:
    timeout: 30s
    targets: [{provider: primary, model: sim-ok-t60-g20ms}]
  long:
    timeout: 1m
    targets: [{provider: primary, model: sim-ok-t250-g20ms}]
  silent:
    timeout: 30s
    targets: [{provider: primary, model: sim-hang}]
`

// primaryKey is the breaker of the first target of f.
var primaryKey = subjects.BreakerKey("primary", "good")

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{nats: natstest.ListenServer(t), sim: simtest.Start(t), config: filepath.Join(t.TempDir(), "policy.yaml")}
	require.NoError(t, os.WriteFile(s.config, fmt.Appendf(nil, policy, s.sim.URL()), 0o600))
	s.caller = s.nats.Dial(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	return s
}

// process is one `broker serve`.
type process struct {
	*exec.Cmd
	name string
	log  *lockedBuffer
	gone chan error // its end, once
}

// start runs n workers more and waits until they take requests.
func (s *site) start(t *testing.T, n int, env ...string) []*process {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	var started []*process
	for range n {
		p := &process{Cmd: exec.Command(path, "serve"), name: "w" + nuid.Next(), log: new(lockedBuffer), gone: make(chan error, 1)}
		p.Env = append([]string{"LLMBUS_NATS_URL=" + s.nats.ClientURL(), "LLMBUS_CONFIG=" + s.config, "LLMBUS_WORKER_NAME=" + p.name,
			"HOME=" + t.TempDir(), "OPENAI_API_KEY=key-1", "ANTHROPIC_API_KEY=key-2"}, env...)
		p.Stdout, p.Stderr = p.log, p.log
		require.NoError(t, p.Start())
		go func() { p.gone <- p.Wait() }()
		t.Cleanup(func() {
			_ = p.Process.Kill()
			if t.Failed() {
				t.Logf("log of %s:\n%s", p.name, p.log.String())
			}
		})
		started = append(started, p)
	}
	for _, p := range started {
		until(t, p.name+" takes requests", func() bool { return s.status(t, p.name).State == "joined" })
	}
	return started
}

// stop sends the signal and returns how the process ended.
func (p *process) stop(t *testing.T, signal syscall.Signal) error {
	t.Helper()
	require.NoError(t, p.Process.Signal(signal))
	return receive(t, p.gone)
}

// receive waits for what must come.
func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		require.Fail(t, "nothing came within a minute")
	}
	return v
}

// status is what the tests read of llm.status.
type status struct {
	State string `json:"state"`
	Stats struct {
		InFlight int `json:"in_flight"`
	} `json:"stats"`
	Details struct {
		Worker   string `json:"worker"`
		Breakers []struct {
			Key   string `json:"key"`
			State string `json:"state"`
		} `json:"breakers"`
	} `json:"details"`
}

// of reports whether the status is of the worker of that name, to which each
// start adds some letters.
func (s status) of(name string) bool { return strings.HasPrefix(s.Details.Worker, name+"-") }

// statuses asks every worker; the slowest has a moment to answer.
func (s *site) statuses(t *testing.T) []status {
	t.Helper()
	inbox := s.caller.NewInbox()
	sub, err := s.caller.SubscribeSync(inbox)
	require.NoError(t, err)
	defer sub.Unsubscribe() //nolint:errcheck // the test is over with it
	require.NoError(t, s.caller.PublishRequest(subjects.Status, inbox, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	var list []status
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return list
		}
		if len(msg.Data) == 0 {
			return list // nobody is there
		}
		var one status
		require.NoError(t, json.Unmarshal(msg.Data, &one), "%s", msg.Data)
		list = append(list, one)
	}
}

func (s *site) status(t *testing.T, name string) (found status) {
	for _, one := range s.statuses(t) {
		if one.of(name) {
			return one
		}
	}
	return status{}
}

// fail makes the primary fail in the given way until mended.
func (s *site) fail(t *testing.T, fault string) {
	t.Helper()
	require.NoError(t, s.sim.Control(sim.Rule{Fault: fault, Model: "good"}))
}

func (s *site) mend() { s.sim.Clear() }

// lockedBuffer is the log of a process that still writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
