package app_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
)

// completion asks the door of a process over HTTP.
func (p *process) completion(t *testing.T, key string, stream bool) (status int, body string) {
	t.Helper()
	url := regexp.MustCompile(`http://[0-9.:]+/v1`).FindString(p.out.String())
	ask := `{"model":"default","messages":[{"role":"user","content":"hello"}]}`
	if stream {
		ask = strings.TrimSuffix(ask, "}") + `,"stream":true}`
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(ask))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

// TestAPIKeysChangeWithoutARestart takes a key back, gives another, and spoils
// the file.
func TestAPIKeysChangeWithoutARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	give := func(tenant string) (secret string) {
		secret, line, err := gateway.NewKey(tenant)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(line), 0o600))
		return secret
	}
	first := give("-")
	env := joining(natstest.ListenServer(t))
	env.HTTP, env.HTTPKeysFile = "127.0.0.1:0", path
	p := start(t, env, echoConfig)
	status, body := p.completion(t, first, false)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"content":"echo: hello"`)

	second := give("-")
	asked := func(key string) int { status, _ := p.completion(t, key, false); return status }
	require.Eventually(t, func() bool { return asked(second) == 200 }, patience, 50*time.Millisecond)
	require.Equal(t, 401, asked(first), "it was taken back")

	require.NoError(t, os.WriteFile(path, []byte(second), 0o600))
	require.Eventually(t, func() bool {
		return asked(second) == 200 && strings.Contains(p.log.String(), "the keys before stay in force")
	}, patience, 50*time.Millisecond)
	require.NotContains(t, p.log.String(), second)
	require.NoError(t, os.Remove(path))
	require.Equal(t, 200, asked(second))
	p.ended(t)
}

// A key whose requests no worker takes would be answered as if the fleet were
// down.
func TestKeysMustFitTheWorker(t *testing.T) {
	for want, tenants := range map[string]bool{"a key without a tenant": true, "a key of the tenant acme": false} {
		env := joining(natstest.ListenServer(t))
		env.HTTP, env.Tenants = "127.0.0.1:0", tenants
		env.HTTPKeys = map[bool]string{true: "-", false: "acme"}[tenants] + " sha256:" + strings.Repeat("0", 64)
		require.ErrorContains(t, launch(t, env, echoConfig).result(t), "LLMBUS_HTTP_KEYS: there is "+want)
	}
}

func TestKeysOfADoorThatIsNotThere(t *testing.T) {
	env := app.Defaults("nats://127.0.0.1:1")
	env.HTTPKeysFile, env.AdminKey = "keys", "a key of sixteen or more"
	err := launch(t, env, echoConfig).result(t)
	require.ErrorContains(t, err, "LLMBUS_ADMIN_KEY: has no effect without LLMBUS_HTTP; set it, or remove this")
	require.ErrorContains(t, err, "LLMBUS_HTTP_KEYS_FILE: has no effect without LLMBUS_HTTP; set it, or remove this")
}

// TestShutdownLetsAnswersOverHTTPEnd stops door and worker together.
func TestShutdownLetsAnswersOverHTTPEnd(t *testing.T) {
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	env := joining(srv)
	env.HTTP = "127.0.0.1:0"
	p := start(t, env, overSim(provider, "sim-ok-t12-g30ms"))
	answers := make(chan string, 2)
	for _, stream := range []bool{false, true} {
		go func() {
			_, body := p.completion(t, "", stream)
			answers <- body
		}()
	}
	require.Eventually(t, func() bool { return provider.Stats().InFlight == 2 }, patience, tick)
	p.ended(t)
	for range 2 {
		require.Contains(t, <-answers, `"finish_reason":"stop"`)
	}
}

// TestTheDoorNeedsNoRightsOfThePage runs it alone, as a user that may ask and no
// more.
func TestTheDoorNeedsNoRightsOfThePage(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "worker", Password: "w"}, {Username: "gateway", Password: "g", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"llm.complete.*", "llm.cancel.*", "llm.status"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", "llm.stream.*"}},
		}}}
		o.NoAuthUser = "worker"
	})
	start(t, joining(srv), echoConfig)
	env := joining(srv)
	env.NatsUser, env.NatsPassword, env.HTTP = "gateway", "g", "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	door := &process{env, &lines{}, &lines{}, stop, make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		door.end <- app.New(env, app.Options{Out: door.out, Log: slog.New(slog.NewTextHandler(door.log, nil)), Ready: func() { close(ready) }}).RunGateway(ctx)
	}()
	<-ready
	for range 20 {
		status, body := door.completion(t, "", true)
		require.Equal(t, 200, status, body)
	}
	door.ended(t)
}
