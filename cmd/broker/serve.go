package main

import (
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/app"
)

func newServe(io streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Answer requests until a signal comes (the default command)",
		Long: `Serve answers requests until SIGINT or SIGTERM, then lets what is in flight end. A second signal ends it at once.

Settings come from the environment:
  LLMBUS_NATS_URL         NATS servers to join, separated by commas; without it a server is embedded
  LLMBUS_NATS_CREDS       credentials file; or LLMBUS_NATS_NKEY, LLMBUS_NATS_USER with LLMBUS_NATS_PASSWORD, LLMBUS_NATS_TOKEN
  LLMBUS_NATS_TLS_CA      PEM files; also LLMBUS_NATS_TLS_CERT with LLMBUS_NATS_TLS_KEY
  LLMBUS_LISTEN           address of the embedded server (127.0.0.1:4222)
  LLMBUS_STORE_DIR        data of the embedded server (~/.local/state/llmbus/nats-<port>)
  LLMBUS_CONFIG           YAML file with features and providers; see broker config --help
  LLMBUS_POOL             requests at once (256)
  LLMBUS_MAX_TIMEOUT      the longest a request may take (10m)
  LLMBUS_SHUTDOWN_GRACE   time for what is in flight (30s)
  LLMBUS_NATS_INBOX       prefix of this process's own inboxes (_INBOX)
  LLMBUS_INBOX_PREFIXES   further shapes of reply subjects, separated by commas
  LLMBUS_TENANTS          true: take llm.complete.<feature>.<tenant>, as account imports map it
  LLMBUS_TENANT_INBOX     where a tenant's answers may go, such as _INBOX.{tenant}; with LLMBUS_TENANTS
  LLMBUS_TENANT_HEADER    true: believe the Llm-Tenant header of callers
  LLMBUS_KV_REPLICAS      of each bucket, at most (3, and fewer where there are fewer servers)
  LLMBUS_CACHE_TTL        how long answers are kept for the cached fallback (24h)
  LLMBUS_JOB_SLOTS        background jobs at once; 0 takes none (16)
  LLMBUS_JOB_ACK_WAIT     silence after which the jobs of a worker go to others (30s)
  LLMBUS_JOB_EXPIRY       how long a job that does not say may wait for its answer (24h)
  LLMBUS_RESULT_TTL       how long answers of jobs are kept (24h)
  LLMBUS_IDEMPOTENCY_TTL  how long an idempotency key counts (24h)
  LLMBUS_AUDIT_TTL        how long records of routing are kept (2160h)
  LLMBUS_AUDIT_BYTES      of all such records; 0 is no bound (0)
  LLMBUS_USAGE_TTL        how long the totals of a day are kept (9600h)
  LLMBUS_REPLAY_TTL       how long frames of resumable streams are kept (5m)
  LLMBUS_REPLAY_BYTES     memory for them on each NATS server (268435456)
  LLMBUS_HTTP             also serve the OpenAI API and the operator's page there; see broker gateway --help
  LLMBUS_ADMIN_KEY        key of that page, or LLMBUS_ADMIN_KEY_FILE
  LLMBUS_AGENTS           owner of the agents that features are shown as; none are shown without it
  LLMBUS_METRICS          address where Prometheus reads /metrics (off)
  LLMBUS_METRICS_TENANTS  tenants with a label of their own (50)
  LLMBUS_TRACE_SAMPLE     share of traces, with OTEL_EXPORTER_OTLP_ENDPOINT (0.01)
  LLMBUS_WORKER_NAME      for people (host and process id)
  LLMBUS_LOG_LEVEL        debug, info, warn or error (info)
  LLMBUS_LOG_FORMAT       text or json (text)

Without LLMBUS_CONFIG there is one feature, default, over every provider found:
  OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_BASE_URL
  OPENAI_MODEL, ANTHROPIC_MODEL, GEMINI_MODEL, OLLAMA_MODEL      instead of the usual model
  OPENAI_BASE_URL, ANTHROPIC_BASE_URL                            instead of the usual service
None of them set: the built-in echo answers.`,
		Example: `  broker serve
  broker serve --http :8080
  broker serve --agents acme
  OPENAI_API_KEY=… LLMBUS_LISTEN=127.0.0.1:14222 broker serve
  LLMBUS_NATS_URL=nats://nats:4222 LLMBUS_CONFIG=broker.yaml broker serve`,
		Args: noArguments,
		RunE: serve(io),
	}
	addHTTP(c)
	addAgents(c)
	return c
}

func serve(io streams) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		env, err := settings(c)
		if err != nil {
			return err
		}
		log, end := env.NewLog(io.err)
		defer end()
		return app.New(env, app.Options{Version: version, Command: command(), Out: io.out, Log: log}).Run(c.Context())
	}
}
