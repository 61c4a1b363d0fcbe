package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/subjects"
)

// rss is the resident memory of a process, now and at its highest, in bytes.
func rss(t *testing.T, pid int) (now, peak int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "VmRSS:" && fields[0] != "VmHWM:" {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		require.NoError(t, err)
		if fields[0] == "VmRSS:" {
			now = kb << 10
		} else {
			peak = kb << 10
		}
	}
	return now, peak
}

// One worker process holds 5,000 open streams, each with a socket to its
// provider, in bounded memory, and gives all of it up when the callers cancel.
func TestLoadManyOpenStreams(t *testing.T) {
	const streams, limit = 5000, 600 << 20
	s := newSite(t)
	provider := simtest.Start(t)
	require.NoError(t, os.WriteFile(s.config, fmt.Appendf(nil, `
providers: {slow: {kind: openai, base_url: %s/v1, models: {sim-ok-t1000-g3s: {}}}}
features: {f: {timeout: 5m, targets: [{provider: slow, model: sim-ok-t1000-g3s}]}}
`, provider.URL()), 0o600))
	worker := s.start(t, 1, "LLMBUS_POOL=6000", "LLMBUS_LOG_LEVEL=error")[0]
	idle, _ := rss(t, worker.Process.Pid)

	var begun, ended atomic.Int64
	_, err := s.caller.Subscribe("llm.stream.*", func(msg *nats.Msg) {
		switch {
		case strings.Contains(string(msg.Data), `"type":"delta"`) && strings.Contains(string(msg.Data), `"seq":2,`):
			begun.Add(1)
		case strings.Contains(string(msg.Data), `"type":"error"`):
			ended.Add(1)
		}
	})
	require.NoError(t, err)
	for i := range streams {
		ask := nats.NewMsg(subjects.Complete("f"))
		ask.Header.Set(subjects.HeaderRequestID, fmt.Sprint("stream-", i))
		ask.Data = []byte(`{"prompt":"hello","stream":true}`)
		require.NoError(t, s.caller.PublishMsg(ask))
		if i%200 == 199 { // as many as the provider's listener queues
			require.Eventually(t, func() bool { return begun.Load()+ended.Load() >= int64(i-400) }, 30*time.Second, time.Millisecond)
		}
	}
	require.Eventually(t, func() bool { return begun.Load()+ended.Load() >= streams }, 30*time.Second, 5*time.Millisecond)
	require.Zero(t, ended.Load(), "streams that failed")
	require.Equal(t, streams, provider.Stats().InFlight)
	_, peak := rss(t, worker.Process.Pid)
	t.Logf("%d open streams: %d MB, %d MB idle", streams, peak>>20, idle>>20)
	require.Less(t, peak, int64(limit))

	for i := range streams {
		require.NoError(t, s.caller.Publish(subjects.Cancel(fmt.Sprint("stream-", i)), nil))
	}
	require.Eventually(t, func() bool { return ended.Load() == streams && provider.Stats().InFlight == 0 }, 30*time.Second, 5*time.Millisecond)
}
