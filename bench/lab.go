package main

import (
	"bufio"
	"context"
	"errors"
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
	worker  int                 // of them, the one that does the work
}

// lab is all processes of a comparison.
type lab struct {
	dir      string
	children []*exec.Cmd
	shared   []side // the NATS server is a process of its own
	inside   []side // it is part of the worker
}

// startLab starts everything. brokerPath may be empty.
func startLab(ctx context.Context, brokerPath string) (l *lab, err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	l = &lab{dir: dir}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if brokerPath == "" {
		brokerPath = filepath.Join(dir, "broker")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", brokerPath, "github.com/llmbus/llmbus/cmd/broker")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the broker: %w\n%s", err, out)
		}
	}
	_, provider, err := l.self("mock")
	if err != nil {
		return nil, err
	}
	server, natsURL, err := l.self("nats", filepath.Join(dir, "jetstream"))
	if err != nil {
		return nil, err
	}
	config, err := writeConfig(dir, provider)
	if err != nil {
		return nil, err
	}
	if err := l.addFloors(provider, natsURL, server); err != nil {
		return nil, err
	}
	return l, l.addBrokers(ctx, brokerPath, config, natsURL, server)
}

func (l *lab) addFloors(provider, natsURL string, server int) error {
	subject := func(model string) string { return floorPrefix + model }
	pid, _, err := l.self("floor", "-provider", provider, "-nats", natsURL)
	if err != nil {
		return err
	}
	l.shared = append(l.shared, side{"floor", natsURL, subject, []int{server, pid}, pid})
	pid, own, err := l.self("floor", "-provider", provider)
	l.inside = append(l.inside, side{"floor", own, subject, []int{pid}, pid})
	return err
}

func (l *lab) addBrokers(ctx context.Context, path, config, natsURL string, server int) error {
	environment := []string{"LLMBUS_CONFIG=" + config, "BENCH_KEY=none", "LLMBUS_LOG_FORMAT=json", "LLMBUS_POOL=4096"}
	pid, err := l.broker(path, "broker.log", append(environment, "LLMBUS_NATS_URL="+natsURL))
	if err != nil {
		return err
	}
	l.shared = append(l.shared, side{"broker", natsURL, subjects.Complete, []int{server, pid}, pid})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return err
	}
	pid, err = l.broker(path, "embedded.log", append(environment, "LLMBUS_LISTEN="+address, "LLMBUS_STORE_DIR="+filepath.Join(l.dir, "embedded")))
	if err != nil {
		return err
	}
	l.inside = append(l.inside, side{"broker", "nats://" + address, subjects.Complete, []int{pid}, pid})
	return errors.Join(answers(ctx, l.shared[1]), answers(ctx, l.inside[1]))
}

// broker starts one; its log goes into a file, as a service manager has it.
func (l *lab) broker(path, log string, environment []string) (pid int, err error) {
	out, err := os.Create(filepath.Join(l.dir, log))
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := exec.Command(path, "serve")
	cmd.Env = append(os.Environ(), environment...)
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

// answers waits until a side does.
func answers(ctx context.Context, s side) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		if nc, err := nats.Connect(s.nats); err == nil {
			_, err := nc.RequestWithContext(ctx, s.subject(models()[0]), prompt(16, false))
			nc.Close()
			if err == nil {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("the %s does not answer", s.name)
}

// writeConfig gives the broker a feature for each model, named as it.
func writeConfig(dir, provider string) (path string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  mock:\n    kind: openai\n    family: compatible\n    base_url: %s/v1\n    api_key_env: BENCH_KEY\n    models:\n", provider)
	for _, m := range models() {
		fmt.Fprintf(&b, "      %s: {price: {input: 2.5, output: 10}}\n", m)
	}
	b.WriteString("features:\n")
	for _, m := range models() {
		fmt.Fprintf(&b, "  %s:\n    timeout: 60s\n    targets:\n    - {provider: mock, model: %s}\n", m, m)
	}
	path = filepath.Join(dir, "broker.yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}
