package app_test

import (
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
)

var embeddedURL = regexp.MustCompile(`nats://\S+`)

// TestEmbeddedServerForOthers has it listen on every interface: then it asks who
// comes, its own worker too.
func TestEmbeddedServerForOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*app.Environment)
		good nats.Option
	}{
		"password": {func(e *app.Environment) { e.NatsUser, e.NatsPassword = "fleet", "canary-1" }, nats.UserInfo("fleet", "canary-1")},
		"token":    {func(e *app.Environment) { e.NatsToken = "canary-1" }, nats.Token("canary-1")},
	} {
		t.Run(name, func(t *testing.T) {
			env := app.Defaults("")
			env.Listen, env.StoreDir = "0.0.0.0:0", t.TempDir()
			tc.set(env)
			p := start(t, env, echoConfig)
			at, err := url.Parse(embeddedURL.FindString(p.out.String()))
			require.NoError(t, err)
			address := "nats://" + net.JoinHostPort("127.0.0.1", at.Port())
			for _, bad := range []nats.Option{nats.UserInfo("fleet", "canary-2"), nats.UserInfo("", ""), nats.Token("canary-2"), nats.Token("")} {
				_, err := nats.Connect(address, bad)
				require.ErrorIs(t, err, nats.ErrAuthorization)
			}
			nc, err := nats.Connect(address, tc.good)
			require.NoError(t, err)
			defer nc.Close()
			resp, err := ask(t, nc, "default", "hello")
			require.NoError(t, err)
			require.Equal(t, "echo: hello", resp.Content)
			require.NotContains(t, p.out.String()+p.log.String(), "canary")
			p.ended(t)
		})
	}
}

func TestEmbeddedServerWithoutALoginServesThisMachineAlone(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0", "example.com:0"} {
		_, err := app.NewServer(app.ServerConfig{Addr: addr, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		require.ErrorContains(t, err, "must be a loopback address", addr)
	}
}
