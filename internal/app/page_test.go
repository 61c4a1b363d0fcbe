package app_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/internal/natstest"
)

const adminKey = "0123456789abcdef"

// pageURL is where the banner says that the page is.
func (p *process) pageURL(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  page +(http://\S+)`).FindStringSubmatch(p.out.String())
	require.NotEmpty(t, m, p.out.String())
	return m[1]
}

func TestThePageShowsTheFleetAndSwitchesIt(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := joining(srv)
	env.HTTP, env.AdminKeyFile = "127.0.0.1:0", filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(env.AdminKeyFile, []byte(adminKey+"\nnote\n"), 0o600))
	p := start(t, env, echoConfig)
	require.Contains(t, p.out.String(), "/ (the admin key flips switches)\n")
	url := p.pageURL(t)
	resp, err := http.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(text), "<title>llmbus fleet</title>")

	view := viewOf(t, url, func(v *fleet.View) bool { return len(v.Features) == 1 && len(v.Stale) == 0 })
	require.Equal(t, "default", view.Features[0].Name)
	require.False(t, view.Features[0].Off)

	flip, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"page/switch", strings.NewReader(`{"flag":"feature.default","to":"off","reason":"x"}`))
	require.NoError(t, err)
	flip.Header.Set("Content-Type", "application/json")
	flip.Header.Set("Authorization", "Bearer "+adminKey)
	resp, err = http.DefaultClient.Do(flip)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	viewOf(t, url, func(v *fleet.View) bool { return v.Features[0].Off })
	_, err = ask(t, srv.Dial(), "default", "hi")
	require.ErrorContains(t, err, "switched_off")
	require.NotContains(t, p.log.String()+p.out.String(), adminKey)
	p.ended(t)
}

// viewOf reads the stream of the page up to a view that is right.
func viewOf(t *testing.T, url string, right func(*fleet.View) bool) *fleet.View {
	t.Helper()
	resp, err := http.Get(url + "page/events")
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // the stream has no end
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var v fleet.View
		if ok && json.Unmarshal([]byte(data), &v) == nil && v.NATS.Connected && right(&v) {
			return &v
		}
	}
	require.Fail(t, "the stream ended", "%v", lines.Err())
	return nil
}

func TestThePageOfAGatewayAlone(t *testing.T) {
	srv := natstest.ListenServer(t)
	start(t, joining(srv), echoConfig)
	p := launchGateway(t, srv)
	require.Contains(t, p.out.String(), "/ (read-only: LLMBUS_ADMIN_KEY is not set)\n")
	viewOf(t, p.pageURL(t), func(v *fleet.View) bool { return len(v.Workers) == 1 })
	p.ended(t)
}

func launchGateway(t *testing.T, srv *natstest.Listener) *process {
	t.Helper()
	env := app.Defaults(srv.ClientURL())
	env.HTTP = "127.0.0.1:0"
	return runUntilReady(t, env, "", (*app.App).RunGateway)
}

func TestAdminKeyFileIsChecked(t *testing.T) {
	env := joining(natstest.ListenServer(t))
	env.HTTP, env.AdminKeyFile = "127.0.0.1:0", filepath.Join(t.TempDir(), "key")
	require.ErrorContains(t, launch(t, env, echoConfig).result(t), "LLMBUS_ADMIN_KEY_FILE: open ")
	require.NoError(t, os.WriteFile(env.AdminKeyFile, []byte("short\n"), 0o600))
	require.ErrorContains(t, launch(t, env, echoConfig).result(t), "must have at least 16 characters")
}
