package main

import (
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

func TestARefusedLoginNamesTheLogin(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) { o.Authorization = "right" })
	got := broker(t, []string{"LLMBUS_NATS_URL=" + srv.ClientURL(), "LLMBUS_NATS_TOKEN=wrong"}, "", "flags")
	require.Equal(t, exitNATS, got.code)
	require.Contains(t, got.err, "uthorization", got.err)
	require.Contains(t, got.err, "; check the login: LLMBUS_NATS_CREDS, ")
}

func TestAnUnknownEventIsNamed(t *testing.T) {
	env := []string{"LLMBUS_NATS_URL=nats://127.0.0.1:1"}
	got := broker(t, env, "", "events", "--event", "circuit_open", "--event", "circuit_closed")
	require.Regexp(t, `^no event of version \S+ is named circuit_open; there are request_started, .*circuit_opened.*\nbroker: connect `, got.err)
}

func TestWatchShowsEveryChange(t *testing.T) {
	srv := natstest.ListenServer(t)
	env := []string{"LLMBUS_NATS_URL=" + srv.ClientURL()}
	worker := background(t, env)
	worker.find(t, "--timeout 30s") // the banner's last line
	watch := background(t, env, "breakers", "--watch")
	watch.find(t, `^echo/echo +closed `)

	js, err := jetstream.New(srv.Dial())
	require.NoError(t, err)
	buckets, err := kv.Bind(t.Context(), js)
	require.NoError(t, err)
	_, err = buckets.Breakers.Put(t.Context(), "echo.echo", []byte(`{"state":"open","why":"incident","generation":7,"cool_down_ms":600000}`))
	require.NoError(t, err)
	watch.find(t, `^[0-9:.]+  echo/echo  open  incident  generation 7$`)

	require.Eventually(t, func() bool { return broker(t, env, "", "ask", "default", "hi").code == exitAnswer }, patience, tick)
	require.Regexp(t, `(?m)^echo/echo +open +incident .* in \d+m.*1/1$`, broker(t, env, "", "breakers").out)

	require.NoError(t, buckets.Breakers.Delete(t.Context(), "echo.echo", 0))
	watch.find(t, `^[0-9:.]+  echo/echo  deleted  -  generation 0$`)
	require.Equal(t, exitOK, watch.stop(t, syscall.SIGINT))
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}
