package app_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
)

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"LLMBUS_NATS_URL": "tls://a:4222,tls://b:4222", "LLMBUS_NATS_USER": "u", "LLMBUS_NATS_PASSWORD": "p",
		"LLMBUS_NATS_TLS_CA": "/ca.pem", "LLMBUS_NATS_TLS_CERT": "/c.pem", "LLMBUS_NATS_TLS_KEY": "/k.pem",
		"LLMBUS_CONFIG": "b.yaml", "LLMBUS_POOL": "16", "LLMBUS_SHUTDOWN_GRACE": "5s", "LLMBUS_INBOX_PREFIXES": "a.b,c",
		"LLMBUS_KV_REPLICAS": "1", "LLMBUS_LOG_LEVEL": "warn", "LLMBUS_LOG_FORMAT": "json", "LLMBUS_WORKER_NAME": "w", "LLMBUS_TENANTS": "true",
	} {
		t.Setenv(name, value)
	}
	env, err := app.ReadEnvironment()
	require.NoError(t, err)
	require.False(t, env.Embedded())
	require.Equal(t, "tls://a:4222,tls://b:4222", env.URL())
	require.Equal(t, []string{"u", "p", "/ca.pem", "/c.pem", "/k.pem"}, []string{env.NatsUser, env.NatsPassword.Reveal(), env.NatsTLSCa, env.NatsTLSCert, env.NatsTLSKey})
	require.Equal(t, []any{"b.yaml", 16, 5 * time.Second, 10 * time.Minute, []string{"a.b", "c"}, 1, slog.LevelWarn, "w", true},
		[]any{env.Config, env.Pool, env.ShutdownGrace, env.MaxTimeout, env.InboxPrefixes, env.KVReplicas, env.LogLevel, env.WorkerName, env.Tenants})
	var log bytes.Buffer
	logger, end := env.NewLog(&log)
	defer end()
	logger.Warn("x")
	require.True(t, strings.HasPrefix(log.String(), "{"), "JSON")
}

func TestEnvironmentRefusals(t *testing.T) {
	for _, tc := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{"POOL": "0"}, "LLMBUS_POOL: must be 1 to 100000, not 0"},
		{map[string]string{"POOL": "many"}, `LLMBUS_POOL: "many" cannot be read: strconv.ParseInt: parsing "many": invalid syntax`},
		{map[string]string{"MAX_TIMEOUT": "25h"}, "LLMBUS_MAX_TIMEOUT: must be above 0 and at most 24h, not 25h0m0s"},
		{map[string]string{"SHUTDOWN_GRACE": "-1s"}, "LLMBUS_SHUTDOWN_GRACE: must be 0s to 1h, not -1s"},
		{map[string]string{"IDEMPOTENCY_TTL": "5m"}, "LLMBUS_IDEMPOTENCY_TTL: must be at least 1s and not below LLMBUS_MAX_TIMEOUT, not 5m0s"},
		{map[string]string{"REPLAY_TTL": "0"}, "LLMBUS_REPLAY_TTL: must be at least 1s, not 0s"},
		{map[string]string{"REPLAY_BYTES": "1"}, "LLMBUS_REPLAY_BYTES: must be at least 1048576, not 1"},
		{map[string]string{"CACHE_TTL": "0"}, "LLMBUS_CACHE_TTL: must be at least 1s, not 0s"},
		{map[string]string{"LOG_FORMAT": "xml"}, `LLMBUS_LOG_FORMAT: must be text or json, not "xml"`},
		{map[string]string{"TENANTS": "true", "TENANT_HEADER": "true"}, "LLMBUS_TENANT_HEADER: must be off with LLMBUS_TENANTS, since a header proves nothing"},
		{map[string]string{"AGENTS": "Acme Inc"}, `LLMBUS_AGENTS: must be the owner of the agents, 1 to 64 of a-z, 0-9, _ and -, not "Acme Inc"`},
		{map[string]string{"AGENTS": "acme", "TENANTS": "true"}, "LLMBUS_AGENTS: cannot be set together with LLMBUS_TENANTS, since a prompt to an agent names no tenant"},
		{map[string]string{"LISTEN": "0.0.0.0:4222"}, "LLMBUS_LISTEN: must be a loopback address, since the embedded server asks nobody who he is; " +
			"set LLMBUS_NATS_USER and LLMBUS_NATS_PASSWORD, or LLMBUS_NATS_TOKEN, for it to ask; or run a NATS server for others and set LLMBUS_NATS_URL"},
		{map[string]string{"LISTEN": ":4222", "NATS_USER": "u"}, "LLMBUS_NATS_USER: needs LLMBUS_NATS_PASSWORD, which the embedded server will ask for"},
		{map[string]string{"HTTP": ":8080", "TENANTS": "true"}, "LLMBUS_HTTP: needs LLMBUS_HTTP_KEYS_FILE with LLMBUS_TENANTS, " +
			"since keys say whose a request is (broker gateway key <tenant> makes one)"},
		{map[string]string{"HTTP": "8080"}, "LLMBUS_HTTP: must be host:port, such as 127.0.0.1:8080"},
		{map[string]string{"HTTP": "0.0.0.0:8080"}, "LLMBUS_HTTP: must be a loopback address, since no API keys are set; " +
			"set LLMBUS_HTTP_KEYS_FILE (broker gateway key makes one)"},
		{map[string]string{"HTTP": ":8080", "HTTP_KEYS": "a", "HTTP_KEYS_FILE": "b"}, "LLMBUS_HTTP_KEYS_FILE: cannot be set together with LLMBUS_HTTP_KEYS; keep one"},
		{map[string]string{"LISTEN": "4222"}, "LLMBUS_LISTEN: must be host:port, such as 127.0.0.1:4222"},
		{map[string]string{"KV_REPLICAS": "3"}, "LLMBUS_KV_REPLICAS: the embedded server is alone; set LLMBUS_NATS_URL, or remove it"},
		{map[string]string{"NATS_CREDS": "/c"}, "LLMBUS_NATS_CREDS: is for a NATS server of your own; set LLMBUS_NATS_URL, or remove it"},
		{map[string]string{"NATS_URL": "nats://h", "LISTEN": "127.0.0.1:1"}, "LLMBUS_LISTEN: is for the embedded server, which LLMBUS_NATS_URL replaces; remove one"},
		{map[string]string{"NATS_URL": "nats://h", "STORE_DIR": "/d"}, "LLMBUS_STORE_DIR: is for the embedded server, which LLMBUS_NATS_URL replaces; remove one"},
		{map[string]string{"NATS_URL": "nats://h", "NATS_CREDS": "/c", "NATS_TOKEN": "t"},
			"LLMBUS_NATS_TOKEN: cannot be set together with LLMBUS_NATS_CREDS; keep one"},
		{map[string]string{"NATS_URL": "nats://h", "NATS_PASSWORD": "secret"}, "LLMBUS_NATS_PASSWORD: needs LLMBUS_NATS_USER"},
		{map[string]string{"NATS_URL": "nats://h", "NATS_TLS_KEY": "/k"}, "LLMBUS_NATS_TLS_CERT: needs LLMBUS_NATS_TLS_KEY, and the other way round"},
		{map[string]string{"NATS_URL": "nats://h", "NATS_INBOX": "$KV.llm_flags"}, `LLMBUS_NATS_INBOX: must be _INBOX or tokens behind it, such as _INBOX.worker, not "$KV.llm_flags"`},
		{map[string]string{"TENANT_INBOX": "_INBOX.{tenant}"}, "LLMBUS_TENANT_INBOX: needs LLMBUS_TENANTS"},
		{map[string]string{"TENANTS": "true", "TENANT_INBOX": "_INBOX"}, `LLMBUS_TENANT_INBOX: must be tokens behind _INBOX with {tenant} as one of them, such as _INBOX.{tenant}, not "_INBOX"`},
		{map[string]string{"TENANTS": "true", "TENANT_INBOX": "llm.{tenant}"}, `LLMBUS_TENANT_INBOX: must be tokens behind _INBOX with {tenant} as one of them, such as _INBOX.{tenant}, not "llm.{tenant}"`},
		{map[string]string{"NATS_URL": "nats://h", "NATS_INBOX": "_INBOX.a."}, `LLMBUS_NATS_INBOX: must be _INBOX or tokens behind it, such as _INBOX.worker, not "_INBOX.a."`},
		{map[string]string{"NATS_URL": "nats://h", "NATS_INBOX": "_INBOX.*"}, `LLMBUS_NATS_INBOX: must be _INBOX or tokens behind it, such as _INBOX.worker, not "_INBOX.*"`},
		{map[string]string{"ADMIN_KEY": "short"}, "LLMBUS_ADMIN_KEY: must have at least 16 characters"},
		{map[string]string{"ADMIN_KEY": "0123456789abcdef", "ADMIN_KEY_FILE": "/k"}, "LLMBUS_ADMIN_KEY_FILE: cannot be set together with LLMBUS_ADMIN_KEY; keep one"},
		{map[string]string{"POOL": "0", "LOG_FORMAT": "xml"}, "LLMBUS_POOL: must be 1 to 100000, not 0\nLLMBUS_LOG_FORMAT: must be text or json, not \"xml\""},
	} {
		t.Run(tc.want, func(t *testing.T) {
			for name, value := range tc.set {
				t.Setenv("LLMBUS_"+name, value)
			}
			_, err := app.ReadEnvironment()
			require.EqualError(t, err, tc.want)
		})
	}
}
