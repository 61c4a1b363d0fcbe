package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/subjects"
)

// TestJobs shows jobs from outside. The built-in echo can use no tools, so that
// a job with tools is given up at once.
func TestJobs(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := []string{"LLMBUS_NATS_URL=" + srv.ClientURL()}
	worker := background(t, env)
	worker.find(t, "--timeout 30s") // the banner's last line
	nc := srv.Dial()
	publish := func(id, feature, payload string) {
		require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: subjects.Job(feature), Header: nats.Header{subjects.HeaderRequestID: {id}}, Data: []byte(payload)}))
	}
	tool := func(args ...string) outcome { return broker(t, env, "", append([]string{"jobs"}, args...)...) }
	list := func() (lines []string) {
		got := tool("list")
		require.Equal(t, exitOK, got.code, got.err)
		return strings.Split(strings.TrimSpace(got.out), "\n")[1:]
	}

	publish("good", "default", `{"prompt":"hello"}`)
	for i := range 5 {
		publish("bad"+strconv.Itoa(i), "default", `{"prompt":"secret","tools":[{"type":"function","function":{"name":"f"}}]}`)
	}
	publish("retried", "nosuch", `{"prompt":"hello"}`)
	require.Eventually(t, func() bool { return len(list()) == 6 && strings.Contains(list()[0], "retried") }, patience, tick)
	require.Regexp(t, `^retried +nosuch +retried +\d+s +1 +unknown_feature$`, list()[0])
	require.Regexp(t, `^bad\d +default +dead +\d+s +1 +invalid_request$`, list()[1])

	require.Contains(t, tool("show", "good").out, `"content": "echo: hello"`)
	shown := tool("show", "bad1")
	require.Contains(t, shown.out, `"code": "invalid_request"`)
	require.NotContains(t, shown.out+tool("list", "--json").out, "secret")
	require.Contains(t, tool("show", "--request", "bad1").out, "secret")
	require.Contains(t, tool("show", "retried").out, `"state": "retried"`)
	require.Equal(t, exitFailure, tool("show", "nobody").code)

	require.Equal(t, outcome{exitOK, "", "replayed 1 of 1\n"}, tool("replay", "bad1"))
	died := func(replay string) func() bool {
		return func() bool {
			out := tool("show", "bad1").out
			return strings.Contains(out, `"state": "dead"`) && strings.Contains(out, `"replay": `+replay)
		}
	}
	require.Eventually(t, died("1"), patience, tick)
	require.Equal(t, outcome{exitOK, "", "replayed 5 of 5\n"}, tool("replay", "--feature", "default"))
	require.Eventually(t, died("2"), patience, tick)
	require.Equal(t, outcome{exitOK, "", "replayed 0 of 0\n"}, tool("replay", "--feature", "other"))

	require.Equal(t, outcome{exitOK, "", "cancelled 1 of 1\n"}, tool("cancel", "retried"))
	require.Contains(t, tool("list").out, " cancelled ")
	require.Equal(t, exitFailure, tool("cancel", "nobody").code)
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}

func TestProgress(t *testing.T) {
	path := t.TempDir() + "/out"
	file, err := os.Create(path)
	require.NoError(t, err)
	p := newProgress(file, "replayed", 1000)
	require.False(t, p.live, "a file is no terminal")
	p.live = true
	for range 1000 {
		p.step()
	}
	p.end()
	require.NoError(t, file.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, barWidth+1, strings.Count(string(text), "\r"))
	require.Contains(t, string(text), "] 500/1000")
	require.True(t, strings.HasSuffix(string(text), "replayed 1000 of 1000\n"))
}
