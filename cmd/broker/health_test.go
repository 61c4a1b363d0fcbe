package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

func TestHealthOfAWorker(t *testing.T) {
	worker := background(t, []string{"LLMBUS_LISTEN=127.0.0.1:0", "LLMBUS_WORKER_NAME=blue-1"})
	env := []string{"LLMBUS_NATS_URL=" + worker.find(t, `nats://\S+`)}
	worker.find(t, "--timeout 30s") // the banner's last line

	require.Equal(t, outcome{}, broker(t, append(env, "LLMBUS_WORKER_NAME=blue-1"), "", "health"))
	require.Equal(t, outcome{}, broker(t, env, "", "health", "--any"))
	got := broker(t, append(env, "LLMBUS_WORKER_NAME=blue"), "", "health", "--timeout", "300ms")
	require.Equal(t, exitFailure, got.code)
	require.Regexp(t, `^broker: the worker of this place does not answer; others do: blue-1-\S+\n$`, got.err)

	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
	require.Equal(t, exitNATS, broker(t, env, "", "health").code)
}

func TestHealthWithoutAnyWorker(t *testing.T) {
	url := natstest.ListenServer(t).ClientURL()
	got := broker(t, []string{"LLMBUS_NATS_URL=" + url}, "", "health")
	require.Equal(t, outcome{exitFailure, "", "broker: no worker is connected to " + url + "\n"}, got)
}

func TestHealthKnowsAWorkerByItsHost(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	require.True(t, ours(host+"-1-Ab3x"))
	require.False(t, ours(host+"x-1-Ab3x"))
	require.False(t, ours("x"))
	t.Setenv("LLMBUS_WORKER_NAME", "blue")
	require.True(t, ours("blue-Ab3x"))
	require.False(t, ours("blue-green-Ab3x"))
}

func TestHealthOfAURL(t *testing.T) {
	p := background(t, nil, "provider-sim", "--listen", "127.0.0.1:0")
	url := p.find(t, `http://\S+`)
	require.Equal(t, outcome{}, broker(t, nil, "", "health", "--url", url+"/stats"))
	require.Equal(t, outcome{exitFailure, "", "broker: " + url + "/nosuch answers with status 404\n"}, broker(t, nil, "", "health", "--url", url+"/nosuch"))
	require.Equal(t, exitOK, p.stop(t, syscall.SIGINT))
	require.Equal(t, exitFailure, broker(t, nil, "", "health", "--url", url+"/stats").code)
}

func TestHealthHelpAndUsage(t *testing.T) {
	require.Contains(t, broker(t, nil, "", "health", "--help").out, "\nExamples:\n  ")
	require.Equal(t, exitUsage, broker(t, nil, "", "health", "--timeout", "0s").code)
	require.Equal(t, exitUsage, broker(t, nil, "", "health", "--url", "http://[").code)
}
