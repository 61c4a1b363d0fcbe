package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// ready tells the parent that this child serves, and where.
func ready(address string) { fmt.Println(address) }

// side is one of the things that are compared.
type side struct {
	name    string
	nats    string              // server
	subject func(string) string // of a request for a model
	pids    []int               // what its CPU time and memory are taken from
	worker  []int               // of them, those that do the work
}

// lab is all processes of a comparison.
type lab struct {
	dir      string
	children []*exec.Cmd
	shared   []side // the NATS server is a process of its own
	inside   []side // it is part of the worker
}

// setup is what a lab holds besides the floor.
type setup struct {
	broker      string                       // path of a built one
	config      func(provider string) string // its configuration
	workers     int                          // brokers that share the requests
	inside      bool                         // one more broker, and a floor, with a NATS server within
	environment []string                     // of the brokers, besides what they need
	first       string                       // a feature that must answer
}

// startLab starts everything.
func startLab(ctx context.Context, s setup) (l *lab, err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	started := &lab{dir: dir}
	defer func() {
		if err != nil {
			started.close()
		}
	}()
	l = started
	_, provider, err := l.self("mock")
	if err != nil {
		return nil, err
	}
	server, natsURL, err := l.self("nats", filepath.Join(dir, "jetstream"))
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "broker.yaml")
	if err := os.WriteFile(config, []byte(s.config(provider)), 0o600); err != nil {
		return nil, err
	}
	s.environment = append([]string{"LLMBUS_CONFIG=" + config, "BENCH_KEY=none", "LLMBUS_LOG_FORMAT=json", "LLMBUS_POOL=4096"}, s.environment...)
	if err := l.addFloors(provider, natsURL, server, s.inside); err != nil {
		return nil, err
	}
	if err := l.addBrokers(ctx, s, natsURL, server); err != nil {
		return nil, err
	}
	return l, nil
}

// build builds the broker into a folder, unless path names a built one.
func build(ctx context.Context, dir, path string) (string, error) {
	if path != "" {
		return path, nil
	}
	path = filepath.Join(dir, "broker")
	out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/llmbus/llmbus/cmd/broker").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the broker: %w\n%s", err, out)
	}
	return path, nil
}

func (l *lab) addFloors(provider, natsURL string, server int, inside bool) error {
	subject := func(model string) string { return floorPrefix + model }
	pid, _, err := l.self("floor", "-provider", provider, "-nats", natsURL)
	if err != nil {
		return err
	}
	l.shared = append(l.shared, side{"floor", natsURL, subject, []int{server, pid}, []int{pid}})
	if !inside {
		return nil
	}
	pid, own, err := l.self("floor", "-provider", provider)
	l.inside = append(l.inside, side{"floor", own, subject, []int{pid}, []int{pid}})
	return err
}

func (l *lab) addBrokers(ctx context.Context, s setup, natsURL string, server int) error {
	var pids []int
	for range s.workers {
		pid, err := l.broker(s.broker, fmt.Sprintf("broker-%d.log", len(pids)), append(s.environment, "LLMBUS_NATS_URL="+natsURL))
		if err != nil {
			return err
		}
		pids = append(pids, pid)
	}
	if len(pids) > 0 {
		l.shared = append(l.shared, side{"broker", natsURL, subjects.Complete, append([]int{server}, pids...), pids})
		if err := answers(ctx, l.shared[1], s); err != nil {
			return err
		}
	}
	if !s.inside {
		return nil
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	pid, err := l.broker(s.broker, "embedded.log", append(s.environment, "LLMBUS_LISTEN="+address, "LLMBUS_STORE_DIR="+filepath.Join(l.dir, "embedded")))
	if err != nil {
		return err
	}
	l.inside = append(l.inside, side{"broker", "nats://" + address, subjects.Complete, []int{pid}, []int{pid}})
	return answers(ctx, l.inside[1], s)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// broker starts one, with metrics; its log goes into a file, as a service manager
// has it.
func (l *lab) broker(path, log string, environment []string) (pid int, err error) {
	metrics, err := freeAddress()
	if err != nil {
		return 0, err
	}
	out, err := os.Create(filepath.Join(l.dir, log))
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := exec.Command(path, "serve")
	cmd.Env = append(append(os.Environ(), environment...), "LLMBUS_METRICS="+metrics)
	cmd.Stdout, cmd.Stderr = out, out
	return l.start(cmd)
}

// self starts this program as one of its parts, and returns once it serves.
func (l *lab) self(args ...string) (pid int, address string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, "", err
	}
	cmd := exec.Command(exe, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if pid, err = l.start(cmd); err != nil {
		return 0, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, "", fmt.Errorf("%s did not start: %w", args[0], err)
	}
	return pid, strings.TrimSpace(line), nil
}

func (l *lab) start(cmd *exec.Cmd) (pid int, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	l.children = append(l.children, cmd)
	return cmd.Process.Pid, nil
}

// close stops the children, the last one first, and removes what they wrote.
func (l *lab) close() {
	for i := len(l.children) - 1; i >= 0; i-- {
		cmd := l.children[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // a child that was told to end may say so
		kill.Stop()
	}
	_ = os.RemoveAll(l.dir)
}

// slowStart is how long a broker may take to read ten thousand features.
const slowStart = 2 * time.Minute

// answers waits until a side does: until each of several workers takes requests,
// so often must it.
func answers(ctx context.Context, s side, what setup) error {
	ctx, cancel := context.WithTimeout(ctx, slowStart)
	defer cancel()
	for good := 0; good < 20*len(s.worker); {
		nc, err := nats.Connect(s.nats)
		if err == nil {
			_, err = nc.RequestWithContext(ctx, s.subject(what.first), prompt(16, false))
			nc.Close()
		}
		if good++; err != nil {
			good = 0
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the %s does not answer", s.name)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// everyModel is a configuration with a feature for each model, named as it.
func everyModel(provider string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  mock:\n    kind: openai\n    family: compatible\n    base_url: %s/v1\n    api_key_env: BENCH_KEY\n    models:\n", provider)
	for _, m := range models() {
		fmt.Fprintf(&b, "      %s: {price: {input: 2.5, output: 10}}\n", m)
	}
	b.WriteString("features:\n")
	for _, m := range models() {
		fmt.Fprintf(&b, "  %s: {timeout: 60s, targets: [{provider: mock, model: %s}]}\n", m, m)
	}
	return b.String()
}
