package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
)

const doorPolicy = `
providers: {p: {kind: openai, base_url: %q}}
features:
  short: {targets: [{provider: p, model: sim-ok}]}
  long: {targets: [{provider: p, model: sim-ok-t200}]}
  paced: {targets: [{provider: p, model: sim-ok-t20-g2ms}]}
`

// BenchmarkDoor compares the processor time of a gateway process with that of
// the least proxy there is, each before the same simulated provider. It reports
// microseconds a request of both, and their ratio.
func BenchmarkDoor(b *testing.B) {
	provider, srv := simtest.Start(b), natstest.ListenServer(b)
	path, err := binary()
	require.NoError(b, err)
	policy := filepath.Join(b.TempDir(), "policy.yaml")
	require.NoError(b, os.WriteFile(policy, fmt.Appendf(nil, doorPolicy, provider.URL()), 0o600))
	env := []string{"LLMBUS_NATS_URL=" + srv.ClientURL(), "LLMBUS_CONFIG=" + policy, "LLMBUS_LOG_LEVEL=error", "HOME=" + b.TempDir(), "OPENAI_API_KEY=x"}
	helper(b, env, `--timeout`, path, "serve")
	door := helper(b, env, `http://[0-9.:]+`, path, "gateway", "--http", "127.0.0.1:0")
	least := filepath.Join(b.TempDir(), "proxy")
	out, err := exec.CommandContext(b.Context(), "go", "build", "-o", least, "./testdata/proxy").CombinedOutput()
	require.NoError(b, err, "%s", out)
	proxy := helper(b, nil, `http://[0-9.:]+`, least, provider.URL())

	for _, tc := range []struct {
		name, feature, model string
		prompt               int
		stream               bool
	}{
		{"whole", "short", "sim-ok", 100, false},
		{"whole of 8 KiB", "short", "sim-ok", 8192, false},
		{"stream of 12 pieces", "short", "sim-ok", 100, true},
		{"stream of 200 pieces", "long", "sim-ok-t200", 100, true},
		{"stream of 20 pieces, one in 2 ms", "paced", "sim-ok-t20-g2ms", 100, true},
	} {
		b.Run(tc.name, func(b *testing.B) {
			ask := func(model string) []byte {
				return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":%q}],"stream":%t}`, model, strings.Repeat("some text ", tc.prompt/10), tc.stream)
			}
			for b.Loop() { // one round measures both
				through := door.spend(b, ask(tc.feature))
				floor := proxy.spend(b, ask(tc.model))
				b.ReportMetric(through, "door-us/req")
				b.ReportMetric(floor, "proxy-us/req")
				b.ReportMetric(through/max(floor, 1), "ratio")
			}
		})
	}
}

// helped is a process that answers HTTP.
type helped struct {
	pid int
	url string
}

// helper starts a process until the benchmark ends, and waits until it has
// written what matches.
func helper(b *testing.B, env []string, pattern string, command ...string) helped {
	b.Helper()
	cmd, out := exec.Command(command[0], command[1:]...), &lockedBuffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	re := regexp.MustCompile(pattern)
	require.Eventually(b, func() bool { return re.MatchString(out.String()) }, 20*time.Second, 10*time.Millisecond, out.String())
	return helped{cmd.Process.Pid, re.FindString(out.String())}
}

// round is how many requests, from how many callers at once, one figure is the
// mean of: the kernel counts a process's time in steps of 10 ms.
const round, callers = 1000, 16

// spend returns the process's own time for a request, in microseconds.
func (h helped) spend(b *testing.B, body []byte) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	url := strings.TrimSuffix(h.url, "/v1") + "/v1/chat/completions"
	failures := make(chan error, round)
	batch := func(n int) {
		var asking sync.WaitGroup
		for range callers {
			asking.Go(func() {
				for range n {
					if err := post(client, url, body); err != nil {
						failures <- err
					}
				}
			})
		}
		asking.Wait()
	}
	batch(2)
	before := cpu(b, h.pid)
	batch(round / callers)
	spent := cpu(b, h.pid) - before
	if len(failures) > 0 {
		require.NoError(b, <-failures)
	}
	return float64(spent.Microseconds()) / float64(round/callers*callers)
}

func post(client *http.Client, url string, body []byte) error {
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err != nil {
		return fmt.Errorf("%w after %s", err, text[max(0, len(text)-300):])
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// cpu is the processor time of a process so far, by Linux's /proc.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
