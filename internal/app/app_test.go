package app_test

import (
	"net"
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
)

func TestEmbeddedServerAndEcho(t *testing.T) {
	env := app.Defaults("")
	env.Listen, env.StoreDir, env.WorkerName = "127.0.0.1:0", t.TempDir(), "w"
	p := start(t, env, "")
	require.Regexp(t, regexp.MustCompile(`^llmbus 1\.2\.3, worker w-....
  NATS      nats://127\.0\.0\.1:\d+ \(embedded, data in /.*\)
  features  default: echo/echo
  providers echo

  NO MODEL ANSWERS: .*
  Set OPENAI_API_KEY, .*

  try       LLMBUS_LISTEN=127\.0\.0\.1:\d+ broker ask default "hello"
            nats -s nats://127\.0\.0\.1:\d+ req llm\.complete\.default '\{"prompt":"hello"\}' --timeout 30s
$`), p.out.String())

	nc, err := nats.Connect(regexp.MustCompile(`nats://[0-9.:]+`).FindString(p.out.String()))
	require.NoError(t, err)
	defer nc.Close()
	msg, err := nc.Request("llm.complete.default", []byte(`{"prompt":"hello"}`), patience)
	require.NoError(t, err)
	resp, err := llm.DecodeReply(msg.Data)
	require.NoError(t, err)
	require.Equal(t, "echo: hello", resp.Content)
	require.Equal(t, "echo", msg.Header.Get("Llm-Provider"))
	p.ended(t)
}

func TestEmbeddedServerNeedsAFreePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	env := app.Defaults("")
	env.Listen, env.StoreDir = l.Addr().String(), t.TempDir()
	err = launch(t, env, "").result(t)
	require.ErrorIs(t, err, app.ErrPortTaken)
	require.EqualError(t, err, "the port is taken: something listens on "+env.Listen+", perhaps another broker; join it with LLMBUS_NATS_URL=nats://"+
		env.Listen+", or choose another port with LLMBUS_LISTEN=127.0.0.1:14222")
}

func TestBadConfigurationStartsNothing(t *testing.T) {
	err := launch(t, app.Defaults("nats://127.0.0.1:1"), "features: 1").result(t)
	require.EqualError(t, err, "configuration:1:11: features: must be a mapping of keys to values")
	env := app.Defaults("nats://127.0.0.1:1")
	env.Config = "/nowhere/broker.yaml"
	require.EqualError(t, launch(t, env, "").result(t), "LLMBUS_CONFIG: open /nowhere/broker.yaml: no such file or directory")
}

func TestProviderWithoutItsKey(t *testing.T) {
	env := joining(natstest.ListenServer(t))
	err := launch(t, env, "providers: {openai: }\nfeatures: {default: {targets: [{provider: openai, model: m}]}}").result(t)
	require.EqualError(t, err, "no feature can be served:\n"+
		"llm_features/provider.openai: providers.openai: the environment variable OPENAI_API_KEY is not set; set it, or name another in api_key_env\n"+
		`llm_features/feature.default:2:5: features.default.targets[0].provider: there is no provider "openai"; add it under providers`)
}

func TestRefusedCredentialsEndTheWorker(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) { o.Username, o.Password = "u", "right" })
	env := joining(srv)
	env.NatsUser, env.NatsPassword = "u", "wrong"
	err := launch(t, env, echoConfig).result(t)
	require.ErrorIs(t, err, app.ErrClosed)
	require.NotContains(t, err.Error(), "wrong")
}

func TestShutdownLetsRequestsEnd(t *testing.T) {
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	p := start(t, joining(srv), overSim(provider, "sim-ok-t12-g20ms"))
	answers := make(chan error, 1)
	go func() {
		_, err := ask(t, srv.Dial(), "default", "hello")
		answers <- err
	}()
	require.Eventually(t, func() bool { return provider.Stats().InFlight == 1 }, patience, tick)
	p.ended(t)
	require.NoError(t, <-answers)
}

func TestWorkerWaitsForNATS(t *testing.T) {
	srv := natstest.ListenServer(t)
	srv.Stop()
	p := launch(t, joining(srv), echoConfig)
	require.Eventually(t, func() bool { return len(p.log.String()) > 0 }, patience, tick)
	srv.Restart()
	<-p.ready
	_, err := ask(t, srv.Dial(), "default", "hello")
	require.NoError(t, err)
	p.ended(t)
}

// overSim is a configuration of one target that a simulator plays.
func overSim(s *sim.Server, model string) string {
	return "providers: {p: {kind: openai, base_url: " + s.URL() + "}}\n" +
		"breaker: {threshold: 2}\nfeatures: {default: {targets: [{provider: p, model: " + model + "}]}}\n"
}
