package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/limits"
)

const limitedConfig = `limits:
  default: {requests_per_day: 3, usd_per_day: 2.5, concurrent: 5}
  tenants: {acme: {requests_per_day: off}}
providers:
  echo: {models: {echo: {price: {input: 10, output: 20}}}}
features:
  support: {limits: {default: {tokens_per_day: 100_000}}, targets: [{provider: echo, model: echo}]}
`

func TestLimits(t *testing.T) {
	srv := natstest.ListenServer(t)
	file := filepath.Join(t.TempDir(), "broker.yaml")
	require.NoError(t, os.WriteFile(file, []byte(limitedConfig), 0o600))
	env := []string{"LLMBUS_NATS_URL=" + srv.ClientURL()}
	worker := background(t, append(env, "LLMBUS_CONFIG="+file))
	worker.find(t, "--timeout 30s") // the banner's last line
	for range 3 {
		require.Equal(t, exitOK, broker(t, env, "", "ask", "support", "hello").code)
	}
	got := broker(t, env, "", "ask", "support", "hello")
	require.Equal(t, exitAnswer, got.code)
	require.Contains(t, got.err, "the tenant's limit of 3 requests a day is reached; come back in ")

	tool := func(args ...string) outcome { return broker(t, env, "", append([]string{"limits"}, args...)...) }
	given := func() bool { return strings.Contains(tool("--tenant=", "--feature=").out, "concurrent        0 ") }
	require.Eventually(t, given, patience, tick, "what is leased and not used comes back")
	require.Regexp(t, `^TENANT +FEATURE +LIMIT +USED +OF +SHARE +RESETS
- +- +concurrent +0 +5 +0% +-
- +- +requests_per_day +3 +3 +100% +in \d+[hms].*
- +- +usd_per_day +0(\.\d+)? +2\.5 +\d+% +in .*
- +support +tokens_per_day +\d+ +100000 +\d+% +in .*
acme +- +concurrent +0 +5 +0% +-
acme +- +usd_per_day +0 +2\.5 +0% +in .*
$`, tool().out)
	var rows []limits.Usage
	require.NoError(t, json.Unmarshal([]byte(tool("--json", "--tenant", "acme").out), &rows))
	require.Len(t, rows, 2)
	require.Equal(t, limits.Usage{Tenant: "acme", Limit: "concurrent", Amount: 5}, rows[0])
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}
