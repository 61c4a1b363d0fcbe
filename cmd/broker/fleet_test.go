package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/internal/natstest"
)

// TestFleetFromATerminal runs a worker, and everything that looks at it, as
// separate processes.
func TestFleetFromATerminal(t *testing.T) {
	env := []string{"LLMBUS_NATS_URL=" + natstest.ListenServer(t).ClientURL()}
	worker := background(t, append(env, "LLMBUS_WORKER_NAME=blue"))
	worker.find(t, "--timeout 30s") // the banner's last line
	tool := func(args ...string) outcome { return broker(t, env, "", args...) }
	until := func(c *running, pattern string, act func()) { // events of before are missed
		line := make(chan string, 1)
		go func() { line <- c.find(t, pattern) }()
		require.Eventually(t, func() bool {
			act()
			return len(line) > 0
		}, patience, tick)
	}
	people := background(t, env, "events", "--feature", "default", "--event", "request_succeeded", "--limit", "1")
	until(people, `^[0-9:.]+ +request_succeeded +default echo/echo +.*[A-Z0-9]{26}$`, func() { tool("ask", "default", "hi") })
	require.NoError(t, people.cmd.Wait(), "it ends by itself after one")

	programs := background(t, env, "events", "--json", "--event", "kill_switch_flipped")
	until(programs, `^\{"event":"kill_switch_flipped",.*"flag":"feature.default",.*"reason":"\\u001b\[31mred"\}$`, func() {
		tool("flags", "clear", "feature.default") // what is off already is not flipped
		tool("flags", "set", "feature.default", "off", "--reason", "\x1b[31mred")
	})
	require.Equal(t, exitOK, programs.stop(t, syscall.SIGINT))
	require.NotContains(t, tool("flags").out, "\x1b", "a reason does not steer the terminal")

	var got outcome
	require.Eventually(t, func() bool { // on a busy machine a part may be late, and the picture says so
		got = tool("top", "--once", "--interval", "100ms")
		return got.code != exitOK || !strings.Contains(got.out, "! ")
	}, patience, tick, "the picture stays incomplete")
	require.Equal(t, exitOK, got.code, got.err)
	require.Regexp(t, `(?m)^llmbus  nats://\S+  \d\d:\d\d:\d\d$`, got.out)
	require.Regexp(t, `(?m)^default  off  .*  echo/echo$`, got.out)
	require.Regexp(t, `(?m)^echo/echo  closed  -  .*  now  +0  +1/1$`, got.out)
	require.Regexp(t, `(?m)^feature.default  off  .*·\[31mred$`, got.out)
	require.Regexp(t, `(?m)^blue-\S+  joined  0/256  `, got.out)
	require.NotContains(t, got.out, "\x1b")

	pictures := background(t, env, "top", "--json", "--interval", "100ms")
	for range 2 {
		var v fleet.View
		require.NoError(t, json.Unmarshal([]byte(pictures.find(t, `^\{.*"stale":\[\].*\}$`)), &v))
		require.Equal(t, []fleet.Target{{Provider: "echo", Model: "echo", State: breaker.Closed}}, v.Features[0].Targets)
	}
	require.Equal(t, exitOK, pictures.stop(t, syscall.SIGINT))

	require.Regexp(t, `^\{\n  "state": "joined",(.*\n)*\}\n$`, tool("health", "--any", "--json").out)
	require.Equal(t, "default\n", words0(tool("__complete", "ask", "")))
	require.Equal(t, "feature.default\n", words0(tool("__complete", "flags", "set", "feat")))
	require.Equal(t, "off\n", words0(tool("__complete", "flags", "set", "feature.default", "of")))
	require.Equal(t, "feature.default\n", words0(tool("__complete", "flags", "clear", "")))
	require.Equal(t, "circuit_half_open\n", words0(tool("__complete", "events", "--event", "circuit_h")))
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))

	alone := tool("top", "--once", "--interval", "100ms")
	require.Equal(t, exitOK, alone.code)
	require.Contains(t, alone.out, "! no worker answers\n")
}

// words0 are the proposals of a completion, without cobra's directive.
func words0(o outcome) string { return regexp.MustCompile(`(?m)^:\d+\n`).ReplaceAllString(o.out, "") }

func TestEventsThatMayNotBeHeard(t *testing.T) {
	url := natstest.ListenServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "w", Password: "w", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}}}}}
	}).ClientURL()
	got := broker(t, []string{"LLMBUS_NATS_URL=" + url, "LLMBUS_NATS_USER=w", "LLMBUS_NATS_PASSWORD=w"}, "", "events")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "broker: follow events: this NATS user may not hear llm.events.>; log in as an operator\n")
}

func TestCompletionIsSilentWithoutNATS(t *testing.T) {
	got := broker(t, []string{nobody}, "", "__complete", "ask", "")
	require.Equal(t, ":4\n", got.out)
	require.Contains(t, broker(t, nil, "", "completion", "bash").out, "__start_broker")
}

func TestConfigAsJSON(t *testing.T) {
	env := []string{"LLMBUS_NATS_URL=" + natstest.ListenServer(t).ClientURL()}
	worker := background(t, env)
	worker.find(t, "--timeout 30s")
	require.JSONEq(t, "{}", broker(t, env, "", "config", "show", "--json").out)
	require.Equal(t, exitOK, broker(t, env, exampleConfig, "config", "push", "-").code)
	shown := broker(t, env, "", "config", "show", "--json")
	var all struct {
		Features map[string]any `json:"features"`
	}
	require.NoError(t, json.Unmarshal([]byte(shown.out), &all))
	require.Contains(t, all.Features, "support")
	require.Equal(t, outcome{exitOK, "[]\n", ""}, broker(t, env, shown.out, "config", "check", "--json", "-"), "JSON is a configuration, too")
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))

	bad := broker(t, nil, "features: {default: {timeot: 5s}}", "config", "check", "--json", "-")
	require.Equal(t, exitConfig, bad.code)
	var problems []problem
	require.NoError(t, json.Unmarshal([]byte(bad.out), &problems))
	require.Contains(t, problems, problem{"stdin", 1, 22, "features.default.timeot", "unknown key; did you mean timeout?"})
}

// TestExitCodesAreDocumented holds the help and docs/operations.md to the same
// list, and that to the codes there are.
func TestExitCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	help := regexp.MustCompile(`(\d) ([^;.]*)[;.]`).FindAllStringSubmatch(strings.ReplaceAll(exitHelp, "\n", " "), -1)
	require.Len(t, help, exitAnswer+1)
	for code, m := range help {
		require.Equal(t, string(rune('0'+code)), m[1])
		require.Contains(t, string(text), "| "+m[1]+" | "+m[2]+" |")
	}
	require.Contains(t, broker(t, nil, "", "--help").out, exitHelp)
}
