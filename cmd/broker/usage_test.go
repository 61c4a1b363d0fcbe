package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

const pricedConfig = `providers:
  echo: {models: {echo: {price: {input: 10, output: 20}}}}
features: {support: {targets: [{provider: echo, model: echo}]}}
`

func TestUsage(t *testing.T) {
	srv := natstest.ListenServer(t)
	file := filepath.Join(t.TempDir(), "broker.yaml")
	require.NoError(t, os.WriteFile(file, []byte(pricedConfig), 0o600))
	env := []string{"LLMBUS_NATS_URL=" + srv.ClientURL()}
	worker := background(t, append(env, "LLMBUS_CONFIG="+file))
	worker.find(t, "--timeout 30s") // the banner's last line
	for range 2 {
		require.Equal(t, exitOK, broker(t, env, "", "ask", "support", "hello").code)
	}
	tool := func(args ...string) outcome { return broker(t, env, "", append([]string{"usage"}, args...)...) }
	require.Eventually(t, func() bool { return strings.Contains(tool("--csv").out, "echo,echo,2,0,2,") }, patience, tick)

	got := tool()
	require.Equal(t, exitOK, got.code, got.err)
	require.Regexp(t, `^PROVIDER +MODEL +REQUESTS +FAILED +CALLS +INPUT +CACHED +OUTPUT +REASONING +COST USD
echo +echo +2 +0 +2 +\d+ +0 +\d+ +0 +0\.000\d+
$`, got.out)
	today := time.Now().UTC().Format(time.DateOnly)
	require.Regexp(t, `^day,tenant,feature,requests,failed,calls,input_tokens,cached_input_tokens,output_tokens,reasoning_tokens,estimated_calls,cost_usd
`+today+`,,support,2,0,2,\d+,0,\d+,0,2,0\.000\d+
$`, tool("--by", "day,tenant,feature", "--day", today, "--csv").out)
	require.Contains(t, tool("--by", "none", "--json").out, `"requests": 2`)
	require.NotContains(t, tool("--by", "tenant,model", "--json").out, "hello")
	require.Equal(t, outcome{exitOK, "[]\n", ""}, tool("--day", "2001-01-01", "--json"))
	require.Contains(t, tool("--from", "2001-01-01", "--to", "2001-01-03").err, "nothing was counted")
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}

func TestUsageRefusesWhatItCannotShow(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--day", "today"}, `"today" is no day; write it as 2026-11-30`},
		{[]string{"--day", "2026-11-30", "--from", "2026-11-01"}, "--day is a day alone"},
		{[]string{"--to", "2026-11-30"}, "--to needs --from"},
		{[]string{"--from", "2026-11-30", "--to", "2026-11-29"}, "the last day, 2026-11-29, is before the first, 2026-11-30"},
		{[]string{"--from", "2020-01-01", "--to", "2026-11-29"}, "days are too many; ask for at most 400"},
		{[]string{"--by", "worker"}, "--by takes day tenant feature provider model, each once, or none"},
		{[]string{"--by", "day,day"}, `not "day"`},
		{[]string{"--csv", "--json"}, "exclude each other"},
	} {
		got := broker(t, nil, "", append([]string{"usage"}, c.args...)...)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, c.want)
	}
}

func TestConfigPrices(t *testing.T) {
	file := `providers:
  openai: {api_key_env: K}
  local: {kind: openai, base_url: "http://127.0.0.1:8000", models: {llama: {price: {input: 0.5, output: 1}}}}
features:
  a: {targets: [{provider: openai, model: gpt-5-mini}, {provider: local, model: llama}]}
  b: {targets: [{provider: openai, model: gpt-5-mini}, {provider: local, model: other}]}
`
	got := broker(t, nil, file, "config", "prices", "-")
	require.Equal(t, exitOK, got.code, got.err)
	require.Regexp(t, `^TARGET +INPUT +CACHED +OUTPUT +PRICE FROM
openai/gpt-5-mini +0\.25 +0\.025 +2 +shipped, as of 20\d\d-\d\d-\d\d
local/llama +0\.5 +0\.5 +1 +configuration
local/other +- +- +- +none
$`, got.out)
	require.Contains(t, broker(t, nil, file, "config", "prices", "--json", "-").out, `"from": "none"`)
	require.Equal(t, exitConfig, broker(t, nil, "a: [", "config", "prices", "-").code)
}
