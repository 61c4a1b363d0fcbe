package main

import (
	"encoding/json"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

func TestConformanceOfAWorker(t *testing.T) {
	worker := background(t, []string{"LLMBUS_LISTEN=127.0.0.1:0"})
	env := []string{"LLMBUS_NATS_URL=" + worker.find(t, `nats://\S+`)}
	worker.find(t, "--timeout 30s") // the banner's last line

	got := broker(t, env, "", "conformance", "worker", "--run", "^a (whole answer|stream is)")
	require.Equal(t, exitOK, got.code, got.out)
	require.Contains(t, got.out, "ok     a whole answer\n")
	require.Contains(t, got.out, "-      a stream is cancelled: left out: it needs a slow feature\n")
	require.Contains(t, got.out, "\n2 passed, 0 failed, 2 left out\n")

	got = broker(t, env, "", "conformance", "worker", "--feature", "nosuch", "--run", "^a whole answer$")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.out, "not ok a whole answer: an answer was due, not unknown_feature\n")
	require.Equal(t, "broker: 1 checks failed\n", got.err)

	require.Equal(t, exitUsage, broker(t, env, "", "conformance", "worker", "--run", "^nosuch$").code)
	require.Equal(t, exitUsage, broker(t, env, "", "conformance", "worker", "--run", "(").code)
	require.Equal(t, exitUsage, broker(t, env, "", "conformance", "worker", "--feature", "No").code)
	got = broker(t, env, "", "conformance", "client")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "give it a server of its own")
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}

func TestConformanceOfNoClient(t *testing.T) {
	got := broker(t, []string{"LLMBUS_NATS_URL=" + natstest.ListenServer(t).ClientURL()}, "", "conformance", "client", "--start", "100ms")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "no client takes tasks on conformance.client within 100ms")
}

func TestSchemasAndTheAsyncAPIDocumentArePrinted(t *testing.T) {
	require.Contains(t, broker(t, nil, "", "conformance", "schema").out, "\nrequest\n")
	require.True(t, json.Valid([]byte(broker(t, nil, "", "conformance", "schema", "request").out)))
	require.Equal(t, exitUsage, broker(t, nil, "", "conformance", "schema", "nosuch").code)
	want, err := os.ReadFile("../../docs/asyncapi.json")
	require.NoError(t, err)
	require.Equal(t, string(want), broker(t, nil, "", "conformance", "asyncapi").out)
}
