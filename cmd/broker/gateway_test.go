package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGateway runs a worker and, apart from it, a gateway with a key.
func TestGateway(t *testing.T) {
	worker := background(t, []string{"LLMBUS_LISTEN=127.0.0.1:0"})
	url := worker.find(t, `nats://\S+`)
	worker.find(t, "--timeout 30s")

	made := broker(t, nil, "", "gateway", "key", "-")
	require.Equal(t, exitOK, made.code)
	require.Regexp(t, `^- sha256:[0-9a-f]{64}\n$`, made.out)
	require.Regexp(t, `^llmbus_[A-Z2-7]{52}\n$`, made.err)
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(keys, []byte(made.out), 0o600))

	door := background(t, []string{"LLMBUS_NATS_URL=" + url, "LLMBUS_HTTP_KEYS_FILE=" + keys}, "gateway", "--http", "127.0.0.1:0")
	base := door.find(t, `http://[0-9.:]+/v1`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/chat/completions",
		strings.NewReader(`{"model":"default","messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(made.err))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), `"content":"echo: hello"`)

	require.Equal(t, exitOK, door.stop(t, syscall.SIGTERM))
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}
