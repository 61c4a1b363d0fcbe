package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
)

const ruledConfig = `data_rules: {classes: [public, internal, secret]}
providers:
  near: {kind: echo, approved_for: [public, internal], models: {m: {price: {input: 1, output: 2}}}}
  far: {kind: echo, approved_for: [public]}
features:
  support:
    data_class: public
    targets: [{provider: far, model: m}, {provider: near, model: m}]
    fallback: [cached, static]
    static_text: later
`

func TestExplainAndAudit(t *testing.T) {
	srv := natstest.ListenServer(t)
	file := filepath.Join(t.TempDir(), "broker.yaml")
	require.NoError(t, os.WriteFile(file, []byte(ruledConfig), 0o600))
	env := []string{"LLMBUS_NATS_URL=" + srv.ClientURL()}
	worker := background(t, append(env, "LLMBUS_CONFIG="+file))
	worker.find(t, "--timeout 30s") // the banner's last line
	tool := func(args ...string) outcome { return broker(t, env, "", args...) }

	require.Equal(t, outcome{exitFailure, "", "broker: there is no audit stream; records begin with data_rules in the configuration and the first request\n"}, tool("audit"))
	require.Equal(t, outcome{exitOK, `feature support, class interactive, data class public
TARGET  VERDICT                                     INPUT  OUTPUT  PRICE FROM
far/m   asked first                                 -      -       none
near/m  asked as number 2, if those before it fail  1      2       configuration
if no target serves: cached, then static
`, ""}, tool("explain", "support"))
	require.Equal(t, exitOK, tool("flags", "set", "provider.far", "off").code)
	got := tool("explain", "support", "--stream")
	require.Regexp(t, `\nfar/m +skipped: switched_off .*\nnear/m +asked first +1 +2 +configuration\n`, got.out)
	got = tool("explain", "support", "--data-class", "internal", "--tools")
	require.Regexp(t, `\nfar/m +skipped: not_approved \(internal\) .*\nnear/m +skipped: lacks \(tools\) `, got.out)
	require.Contains(t, got.out, `no target would be asked: invalid_request: tools: no target of feature "support"`)
	got = tool("explain", "support", "--data-class", "nonsense", "--json")
	require.Contains(t, got.out, `"code": "invalid_request"`)
	require.Contains(t, got.out, `"reason": "data_class: must be one of public, internal, secret"`)
	require.Equal(t, exitAnswer, tool("explain", "nosuch").code)
	got = tool("explain", "support", "--class", "silly")
	require.Equal(t, outcome{exitUsage, "", "broker: --class must be interactive, background or structured, not \"silly\"\n"}, got)
	require.Equal(t, exitUsage, tool("explain", "support", "--max-tokens", "-1").code)
	nc := srv.Dial()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := kv.Bind(t.Context(), js)
	require.NoError(t, err)
	_, err = b.Features.Put(t.Context(), "feature.broken", []byte("targets: [{provider: near, model: m}]"))
	require.NoError(t, err)
	got = tool("explain", "broken")
	require.Equal(t, exitConfig, got.code)
	require.Contains(t, got.err, "features.broken.data_class: is missing")

	require.Equal(t, exitOK, tool("ask", "support", "canary").code)
	require.Eventually(t, func() bool { return strings.Contains(tool("audit").out, "near/m: ok") }, patience, tick)
	require.Regexp(t, ` support +- +public +model +far/m: switched_off; near/m: ok\n`, tool("audit", "--feature", "support").out)
	require.NotContains(t, tool("audit", "--json").out, "canary")
	require.NotContains(t, tool("audit", "--refused").out, "support")
	require.Equal(t, exitUsage, tool("audit", "--limit", "0").code)
	require.Equal(t, exitUsage, tool("audit", "--since", "-1h").code)
	require.Equal(t, exitOK, worker.stop(t, syscall.SIGTERM))
}
