package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpHasExamples(t *testing.T) {
	for _, args := range [][]string{
		{}, {"serve"}, {"ask"}, {"top"}, {"events"}, {"breakers"}, {"health"}, {"completion"}, {"flags"}, {"flags", "set"}, {"flags", "clear"},
		{"jobs"}, {"jobs", "list"}, {"jobs", "show"}, {"jobs", "cancel"}, {"jobs", "replay"},
		{"config"}, {"config", "check"}, {"config", "push"}, {"config", "show"}, {"provider-sim"}, {"demo"}, {"gateway"}, {"gateway", "key"},
		{"conformance"}, {"conformance", "worker"}, {"conformance", "client"}, {"conformance", "schema"}, {"conformance", "asyncapi"},
	} {
		got := broker(t, nil, "", append(args, "--help")...)
		require.Equal(t, exitOK, got.code, args)
		require.Empty(t, got.err)
		require.Contains(t, got.out, "\nExamples:\n  ", args)
	}
}

func TestVersion(t *testing.T) {
	for _, flag := range []string{"-version", "--version"} {
		got := broker(t, nil, "", flag)
		require.Equal(t, exitOK, got.code)
		require.Regexp(t, `^broker \d+\.\d+\.\d+`, got.out)
	}
}

// nobody is a NATS server that is not there.
const nobody = "LLMBUS_NATS_URL=nats://127.0.0.1:1"

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		args []string
		env  []string
		code int
		err  string
	}{
		{[]string{"nosuch"}, nil, exitUsage, `broker: unknown command "nosuch"; see broker --help`},
		{[]string{"flag"}, nil, exitUsage, `broker: unknown command "flag"; did you mean flags?; see broker --help`},
		{[]string{"serve", "x"}, nil, exitUsage, `broker: broker serve takes no argument "x"; see broker serve --help`},
		{[]string{"serve", "--x"}, nil, exitUsage, `broker: unknown flag: --x; see broker serve --help`},
		{[]string{"ask"}, nil, exitUsage, `broker: broker ask needs a feature and a text; see broker ask --help`},
		{[]string{"ask", "default", " "}, nil, exitUsage, `broker: the question is empty; write it after the feature, or to the standard input`},
		{[]string{"ask", "--timeout", "0", "default", "x"}, nil, exitUsage, `broker: --timeout must be above 0`},
		{[]string{"flags", "set", "feature.x"}, nil, exitUsage, `broker: broker flags set needs a flag and on or off; see broker flags set --help`},
		{[]string{"flags", "set", "feature.x", "of"}, nil, exitUsage, `broker: "of" is neither on nor off`},
		{[]string{"flags", "set", "nothing", "off"}, nil, exitUsage, `broker: "nothing" is no flag; see broker flags set --help`},
		{[]string{"jobs"}, nil, exitUsage, `broker: broker jobs needs list, show, cancel or replay; see broker jobs --help`},
		{[]string{"jobs", "show"}, nil, exitUsage, `broker: broker jobs show needs the id of a job; see broker jobs show --help`},
		{[]string{"jobs", "replay"}, nil, exitUsage, `broker: broker jobs replay needs ids of jobs, --feature or --all; see broker jobs replay --help`},
		{[]string{"jobs", "replay", "--all", "x"}, nil, exitUsage, `broker: broker jobs replay needs ids of jobs, --feature or --all; see broker jobs replay --help`},
		{[]string{"top", "--interval", "1ms"}, nil, exitUsage, `broker: --interval must be 100ms to 1h`},
		{[]string{"top", "x"}, nil, exitUsage, `broker: broker top takes no argument "x"; see broker top --help`},
		{[]string{"events", "--limit", "-1"}, nil, exitUsage, `broker: --limit must be 0 or more`},
		{[]string{"events", "--event", "a.b"}, nil, exitUsage, `broker: --event: "a.b" is no name of an event, such as circuit_opened`},
		{[]string{"health", "--url", "http://127.0.0.1:1", "--any"}, nil, exitUsage, `broker: --url asks no worker`},
		{[]string{"completion"}, nil, exitUsage, `broker: broker completion needs bash, zsh, fish or powershell; see broker completion --help`},
		{[]string{"completion", "nosh"}, nil, exitUsage, `broker: broker completion needs bash, zsh, fish or powershell; see broker completion --help`},
		{[]string{"completion", "bash", "x"}, nil, exitUsage, `broker: broker completion bash takes no argument "x"; see broker completion bash --help`},
		{[]string{"config"}, nil, exitUsage, `broker: broker config needs check, push, show or prices; see broker config --help`},
		{[]string{"config", "check"}, nil, exitUsage, `broker: name a file, or set LLMBUS_CONFIG`},
		{[]string{"config", "check", "/nowhere"}, nil, exitConfig, `broker: open /nowhere: no such file or directory`},
		{[]string{"gateway", "key"}, nil, exitUsage, `broker: broker gateway key needs a tenant; see broker gateway key --help`},
		{[]string{"gateway", "key", "a b"}, nil, exitUsage, `broker: entry 1: must be <tenant> sha256:<hex>, as broker gateway key prints it`},
		{[]string{"gateway", "--http", "0.0.0.0:8080"}, nil, exitConfig, `broker: LLMBUS_HTTP: must be a loopback address, since no API keys are set`},
		{[]string{"gateway"}, []string{"LLMBUS_HTTP_KEYS_FILE=/nowhere"}, exitFailure, `broker: LLMBUS_HTTP_KEYS_FILE: stat /nowhere: no such file or directory`},
		{nil, []string{"LLMBUS_POOL=0"}, exitConfig, `broker: LLMBUS_POOL: must be 1 to 100000, not 0`},
		{[]string{"ask", "default", "x"}, []string{nobody}, exitNATS, `broker: connect to NATS at nats://127.0.0.1:1: `},
		{[]string{"top"}, []string{nobody}, exitNATS, `broker: connect to NATS at nats://127.0.0.1:1: `},
		{[]string{"events"}, []string{nobody}, exitNATS, `broker: connect to NATS at nats://127.0.0.1:1: `},
		{[]string{"breakers"}, []string{nobody}, exitNATS, `broker: connect to NATS at nats://127.0.0.1:1: `},
		{[]string{"provider-sim", "--listen", "nowhere"}, nil, exitFailure, `broker: open the simulator's port: `},
	} {
		got := broker(t, tc.env, "", tc.args...)
		require.Equal(t, tc.code, got.code, "%v: %s", tc.args, got.err)
		require.Contains(t, got.err, tc.err)
		require.Empty(t, got.out)
	}
}

func TestConfigCheck(t *testing.T) {
	good := broker(t, nil, exampleConfig, "config", "check", "-")
	require.Equal(t, outcome{}, good, "the example of --help is good, and success is quiet")

	bad := broker(t, nil, "providers: {echo: }\nfeatures:\n  default:\n    timeot: 5s\n    targets: [{provider: ecko, model: m}]\n", "config", "check", "-")
	require.Equal(t, outcome{exitConfig, "", "broker: stdin:4:5: features.default.timeot: unknown key; did you mean timeout?\n" +
		`stdin:5:16: features.default.targets[0].provider: there is no provider "ecko"; did you mean echo?` + "\n"}, bad)
}

// TestTools runs a worker and every tool against it, as separate processes.
func TestTools(t *testing.T) {
	worker := background(t, []string{"LLMBUS_LISTEN=127.0.0.1:0"})
	env := []string{"LLMBUS_NATS_URL=" + worker.find(t, `nats://\S+`)}
	worker.find(t, "--timeout 30s") // the banner's last line
	tool := func(args ...string) outcome { return broker(t, env, "from stdin", args...) }

	got := tool("ask", "default", "hello")
	require.Equal(t, exitOK, got.code, got.err)
	require.Equal(t, "echo: hello\n", got.out)
	require.Regexp(t, `^\[echo/echo, \d+ ms, \d+ \+ \d+ tokens\]\n$`, got.err)
	require.Equal(t, "echo: from stdin\n", tool("ask", "--stream", "default").out)
	require.Contains(t, tool("ask", "--json", "default", "hi").out, `"content": "echo: hi"`)
	require.Regexp(t, `^\{"seq":1,.*"type":"start".*\}\n(.*\n)*\{.*"type":"end".*\}\n$`, tool("ask", "--json", "--stream", "default", "hi").out)
	require.NotContains(t, tool("ask", "--idempotency-key", "k", "default", "hi").err, "replayed")
	require.Regexp(t, `^\[echo/echo, .*, replayed\]\n$`, tool("ask", "--idempotency-key", "k", "--stream", "default", "hi").err)
	require.Equal(t, outcome{exitAnswer, "", "broker: unknown_feature: feature \"nosuch\" is not configured; known are default\n"}, tool("ask", "nosuch", "hi"))

	require.Regexp(t, `^BREAKER +STATE .*\necho/echo +closed +- .* 0 +now +1/1\n$`, tool("breakers").out)
	require.Contains(t, tool("breakers", "--json").out, `"key": "echo.echo"`)

	require.Equal(t, outcome{exitOK, "", "model.echo.a=2Fb=2Ec is set, but no feature has that name or asks that target now: look for a typing error\n"},
		tool("flags", "set", "model.echo.a/b.c", "off", "--by", "me", "--reason", "incident 1", "--now"))
	require.Regexp(t, `(?m)^model\.echo\.a=2Fb=2Ec +off now +\S+ \S+ +me +incident 1$`, tool("flags").out)
	require.Equal(t, outcome{}, tool("flags", "clear", "model.echo.a/b.c"))
	require.Equal(t, "[]\n", tool("flags", "--json").out)
	require.Equal(t, outcome{}, tool("flags", "set", "feature.default", "off"))
	require.Equal(t, outcome{exitAnswer, "", "broker: switched_off: feature.default is switched off by an operator\n"}, tool("ask", "default", "hi"))
	require.Equal(t, outcome{}, tool("flags", "set", "feature.default", "on"))
	require.Equal(t, exitOK, tool("ask", "default", "hi").code)

	file := "providers:\n  echo: {}\nfeatures:\n  default:\n    targets:\n      - provider: echo\n        model: x\n"
	require.Equal(t, "", tool("config", "show").out)
	require.Equal(t, outcome{exitOK, "provider.echo\nfeature.default\n", ""}, broker(t, env, file, "config", "push", "-"))
	require.Equal(t, outcome{exitOK, file, ""}, tool("config", "show"))
	require.Eventually(t, func() bool { return strings.HasPrefix(tool("ask", "default", "hi").err, "[echo/x,") }, patience, tick)

	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
	require.Equal(t, exitNATS, tool("ask", "default", "hi").code)
}

func TestProviderSim(t *testing.T) {
	p := background(t, nil, "provider-sim", "--listen", "127.0.0.1:0")
	resp, err := http.Get(p.find(t, `http://\S+`) + "/stats")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), `"calls"`)
	require.Equal(t, exitOK, p.stop(t, syscall.SIGINT))
}

func TestDemoShowsWhatItPromises(t *testing.T) {
	got := broker(t, nil, "", "demo")
	require.Equal(t, exitOK, got.code, got.out+got.err)
	for _, scene := range []string{"answer", "stream", "failover", "breaker", "skipped", "probe", "watcher", "recovery", "switch", "done"} {
		require.Regexp(t, `(?m)^`+scene+` `, got.out)
	}
	require.Empty(t, got.err)
}
