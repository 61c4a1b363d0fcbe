package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asBroker makes the test binary behave as the program itself, so that tests
// start real processes without another build.
const asBroker = "RUN_AS_BROKER=1"

const (
	patience = time.Minute // on a busy machine; a test that passes does not wait for it
	tick     = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	if name, value, _ := strings.Cut(asBroker, "="); os.Getenv(name) == value {
		main()
	}
	os.Exit(m.Run())
}

// outcome is a command that has ended.
type outcome struct {
	code     int
	out, err string
}

func broker(t *testing.T, env []string, stdin string, args ...string) outcome {
	t.Helper()
	cmd := prepare(t, env, args)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		require.NoError(t, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func prepare(t *testing.T, env, args []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append([]string{asBroker, "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}

// running is a command that goes on until it is told to stop.
type running struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func background(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	cmd := prepare(t, env, args)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &running{cmd, bufio.NewReader(out)}
}

// find reads lines up to one that matches, and returns what did. A process that
// does not write it in time is killed.
func (r *running) find(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.AfterFunc(patience, func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	for {
		line, err := r.out.ReadString('\n')
		require.NoError(t, err, "the output ended before %s", pattern)
		if m := re.FindString(strings.TrimSuffix(line, "\n")); m != "" {
			return m
		}
	}
}

// stop sends a signal and returns the exit code.
func (r *running) stop(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	require.NoError(t, r.cmd.Process.Signal(signal))
	if err := r.cmd.Wait(); err != nil {
		_, exited := errors.AsType[*exec.ExitError](err)
		require.True(t, exited, "%v", err)
	}
	return r.cmd.ProcessState.ExitCode()
}
