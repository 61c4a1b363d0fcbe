package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/llmbus/llmbus/audit"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/provider/wire"
	"github.com/llmbus/llmbus/telemetry"
)

// prefix begins the names of the settings of this process. Empty values count
// as absent where the setting is text.
const prefix = "LLMBUS"

// Environment is what a process is told by its environment. The name of a
// setting is LLMBUS_ and the field's name in capitals, as in LLMBUS_NATS_URL.
type Environment struct {
	NatsURL      string      `split_words:"true"` // servers, separated by commas; empty embeds one
	NatsCreds    string      `split_words:"true"` // path of a credentials file
	NatsNkey     string      `split_words:"true"` // path of an nkey seed file
	NatsUser     string      `split_words:"true"`
	NatsPassword wire.Secret `split_words:"true"`
	NatsToken    wire.Secret `split_words:"true"`
	NatsInbox    string      `split_words:"true"` // prefix of this process's own inboxes; default _INBOX
	NatsTLSCa    string      `split_words:"true"` // path of a PEM file; the system's authorities by default
	NatsTLSCert  string      `split_words:"true"` // path of a PEM file, with NatsTLSKey
	NatsTLSKey   string      `split_words:"true"`

	Listen   string `split_words:"true"` // host:port of the embedded server; default 127.0.0.1:4222
	StoreDir string `split_words:"true"` // data of the embedded server; default in the user's state folder

	Config         string        `split_words:"true"` // path of the YAML file
	Pool           int           `split_words:"true"` // requests at once; default 256
	MaxTimeout     time.Duration `split_words:"true"` // the longest a request may take; default 10m
	ShutdownGrace  time.Duration `split_words:"true"` // for what is in flight; default 30s
	InboxPrefixes  []string      `split_words:"true"` // further shapes of reply subjects, separated by commas
	Tenants        bool          `split_words:"true"` // take llm.complete.<feature>.<tenant>
	TenantInbox    string        `split_words:"true"` // the inboxes of a tenant, such as _INBOX.{tenant}; empty: any
	TenantHeader   bool          `split_words:"true"` // believe Llm-Tenant
	KVReplicas     int           `split_words:"true"` // of each bucket, at most; default 3, and fewer where there are fewer servers
	CacheTTL       time.Duration `split_words:"true"` // of answers kept for the cached fallback; default 24h
	JobSlots       int           `split_words:"true"` // background jobs at once; 0 takes none; default 16
	JobAckWait     time.Duration `split_words:"true"` // silence after which the jobs of a worker go to others; default 30s
	JobExpiry      time.Duration `split_words:"true"` // of jobs that name none; default 24h
	ResultTTL      time.Duration `split_words:"true"` // how long answers of jobs are kept; default 24h
	IdempotencyTTL time.Duration `split_words:"true"` // a key counts for so long; default 24h
	AuditTTL       time.Duration `split_words:"true"` // how long records of routing are kept; default 2160h
	AuditBytes     int64         `split_words:"true"` // of all such records, at most; 0, the default, is no bound
	UsageTTL       time.Duration `split_words:"true"` // how long the totals of a day are kept; default 9600h
	ReplayTTL      time.Duration `split_words:"true"` // of frames kept for readers that come back; default 5m
	ReplayBytes    int64         `split_words:"true"` // of all such frames; default 256 MiB
	HTTP           string        `split_words:"true"` // host:port of the OpenAI door; empty: none
	HTTPKeys       string        `split_words:"true"` // who may ask there, as gateway.ParseKeys reads it
	HTTPKeysFile   string        `split_words:"true"` // path of a file with the same; instead of HTTPKeys
	Agents         string        `split_words:"true"` // owner of the agents that features are shown as; empty: none are
	AdminKey       wire.Secret   `split_words:"true"` // of the page beside the door; empty: nobody can act there
	AdminKeyFile   string        `split_words:"true"` // path of a file with the same in its first line; instead of AdminKey
	Metrics        string        `split_words:"true"` // host:port where Prometheus reads /metrics; empty: nowhere
	MetricsTenants int           `split_words:"true"` // tenants with a label of their own; default 50
	TraceSample    *float64      `split_words:"true"` // share of traces that no caller has decided on; default 0.01
	WorkerName     string        `split_words:"true"` // for people; default host and process id
	LogLevel       slog.Level    `split_words:"true"` // debug, info (default), warn or error
	LogFormat      string        `split_words:"true"` // text (default) or json

	keys   services
	otlp   otlp
	lookup func(string) (string, bool) // variables that hold keys of providers
}

// services are the variables of providers, which other tools use as well.
type services struct {
	OpenAIKey        string `envconfig:"OPENAI_API_KEY"`
	OpenAIBaseURL    string `envconfig:"OPENAI_BASE_URL"`
	OpenAIModel      string `envconfig:"OPENAI_MODEL" default:"gpt-5-mini"`
	AnthropicKey     string `envconfig:"ANTHROPIC_API_KEY"`
	AnthropicBaseURL string `envconfig:"ANTHROPIC_BASE_URL"`
	AnthropicModel   string `envconfig:"ANTHROPIC_MODEL" default:"claude-haiku-4-5"`
	GeminiKey        string `envconfig:"GEMINI_API_KEY"`
	GeminiModel      string `envconfig:"GEMINI_MODEL" default:"gemini-2.5-flash"`
	OllamaBaseURL    string `envconfig:"OLLAMA_BASE_URL"`
	OllamaModel      string `envconfig:"OLLAMA_MODEL" default:"llama3.2"`
}

// Defaults of the embedded server.
const defaultListen = "127.0.0.1:4222"

// Defaults are the settings of a process that is told nothing. natsURL is the
// server to join, or empty.
func Defaults(natsURL string) *Environment {
	return &Environment{
		NatsURL: natsURL, Pool: 256, MaxTimeout: 10 * time.Minute, ShutdownGrace: 30 * time.Second, CacheTTL: 24 * time.Hour, IdempotencyTTL: 24 * time.Hour,
		JobSlots: 16, JobAckWait: 30 * time.Second, JobExpiry: 24 * time.Hour, ResultTTL: 24 * time.Hour,
		UsageTTL: 400 * 24 * time.Hour, AuditTTL: audit.DefaultMaxAge, ReplayTTL: 5 * time.Minute, ReplayBytes: 256 << 20, MetricsTenants: telemetry.DefaultTenants,
		LogLevel: slog.LevelInfo, LogFormat: "text", lookup: func(string) (string, bool) { return "", false },
	}
}

// ReadEnvironment reads and checks the environment of this process.
func ReadEnvironment() (*Environment, error) {
	e := Defaults("")
	e.lookup = os.LookupEnv
	if err := errors.Join(readable(envconfig.Process(prefix, e)), readable(envconfig.Process("", &e.keys)), readable(envconfig.Process("", &e.otlp))); err != nil {
		return nil, err
	}
	return e, e.validate()
}

// readable says what a value must be, without the names of Go's types.
func readable(err error) error {
	if p, ok := errors.AsType[*envconfig.ParseError](err); ok {
		return fmt.Errorf("%s: %q cannot be read: %w", p.KeyName, p.Value, p.Err)
	}
	return err
}

// validate refuses what cannot apply, naming the variable.
func (e *Environment) validate() error {
	var errs []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(prefix+"_"+format, args...))
		}
	}
	refuse(e.Pool < 1 || e.Pool > 100_000, "POOL: must be 1 to 100000, not %d", e.Pool)
	refuse(e.MaxTimeout <= 0 || e.MaxTimeout > 24*time.Hour, "MAX_TIMEOUT: must be above 0 and at most 24h, not %s", e.MaxTimeout)
	refuse(e.ShutdownGrace < 0 || e.ShutdownGrace > time.Hour, "SHUTDOWN_GRACE: must be 0s to 1h, not %s", e.ShutdownGrace)
	refuse(e.CacheTTL < time.Second, "CACHE_TTL: must be at least 1s, not %s", e.CacheTTL)
	refuse(e.JobSlots < 0 || e.JobSlots > 100_000, "JOB_SLOTS: must be 0 to 100000, not %d", e.JobSlots)
	refuse(e.JobAckWait < time.Second || e.JobAckWait > time.Hour, "JOB_ACK_WAIT: must be 1s to 1h, not %s", e.JobAckWait)
	refuse(e.JobExpiry <= 0 || e.JobExpiry > jobs.MaxExpiry, "JOB_EXPIRY: must be above 0 and at most %s, not %s", jobs.MaxExpiry, e.JobExpiry)
	refuse(e.ResultTTL < time.Second, "RESULT_TTL: must be at least 1s, not %s", e.ResultTTL)
	refuse(e.IdempotencyTTL < max(time.Second, min(e.MaxTimeout, 24*time.Hour)), "IDEMPOTENCY_TTL: must be at least 1s and not below LLMBUS_MAX_TIMEOUT, not %s", e.IdempotencyTTL)
	refuse(e.AuditTTL < time.Hour, "AUDIT_TTL: must be at least 1h, not %s", e.AuditTTL)
	refuse(e.AuditBytes != 0 && e.AuditBytes < 1<<20, "AUDIT_BYTES: must be at least 1048576, or 0 for no bound, not %d", e.AuditBytes)
	refuse(e.UsageTTL < 48*time.Hour, "USAGE_TTL: must be at least 48h, so that a day is whole before it goes, not %s", e.UsageTTL)
	refuse(e.ReplayTTL < time.Second, "REPLAY_TTL: must be at least 1s, not %s", e.ReplayTTL)
	refuse(e.ReplayBytes < 1<<20, "REPLAY_BYTES: must be at least 1048576, not %d", e.ReplayBytes)
	refuse(e.KVReplicas < 0 || e.KVReplicas > 5, "KV_REPLICAS: must be 1 to 5, not %d", e.KVReplicas)
	refuse(e.LogFormat != "text" && e.LogFormat != "json", "LOG_FORMAT: must be text or json, not %q", e.LogFormat)
	refuse(e.Tenants && e.TenantHeader, "TENANT_HEADER: must be off with LLMBUS_TENANTS, since a header proves nothing")
	refuse((e.NatsTLSCert == "") != (e.NatsTLSKey == ""), "NATS_TLS_CERT: needs LLMBUS_NATS_TLS_KEY, and the other way round")
	refuse(e.NatsPassword != "" && e.NatsUser == "", "NATS_PASSWORD: needs LLMBUS_NATS_USER")
	e.refuseHTTP(refuse)
	e.refuseAgents(refuse)
	e.refusePage(refuse)
	e.refuseInboxes(refuse)
	if ways := e.logins(); len(ways) > 1 {
		refuse(true, "%s: cannot be set together with LLMBUS_%s; keep one", ways[1], ways[0])
	}
	if e.Embedded() {
		e.refuseEmbedded(refuse)
	} else {
		refuse(e.Listen != "", "LISTEN: is for the embedded server, which LLMBUS_NATS_URL replaces; remove one")
		refuse(e.StoreDir != "", "STORE_DIR: is for the embedded server, which LLMBUS_NATS_URL replaces; remove one")
	}
	return errors.Join(append(errs, e.observabilityProblems()...)...)
}

// logins names the ways to log in that are set.
func (e *Environment) logins() []string {
	return set(map[string]string{"NATS_CREDS": e.NatsCreds, "NATS_NKEY": e.NatsNkey, "NATS_USER": e.NatsUser, "NATS_TOKEN": e.NatsToken.Reveal()})
}

func (e *Environment) tlsSettings() []string {
	return set(map[string]string{"NATS_TLS_CA": e.NatsTLSCa, "NATS_TLS_CERT": e.NatsTLSCert})
}

// set lists the names whose values are not empty.
func set(values map[string]string) []string {
	var names []string
	for name, value := range values {
		if value != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Embedded reports whether the process brings its own NATS server.
func (e *Environment) Embedded() bool { return e.NatsURL == "" }

func (e *Environment) listen() string { return cmp.Or(e.Listen, defaultListen) }

// URL is where the commands of this program find NATS.
func (e *Environment) URL() string { return cmp.Or(e.NatsURL, "nats://"+e.listen()) }

// storeDir is where the embedded server keeps its data. Servers on different
// ports must not share it.
func (e *Environment) storeDir() (string, error) {
	if e.StoreDir != "" {
		return e.StoreDir, nil
	}
	state, ok := e.lookup("XDG_STATE_HOME")
	if !ok || state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("LLMBUS_STORE_DIR: must be set, since there is no home folder: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	_, port, err := net.SplitHostPort(e.listen())
	return filepath.Join(state, "llmbus", "nats-"+port), err
}

// found is what the default configuration is made of.
func (e *Environment) found() config.Found {
	var f config.Found
	k := &e.keys
	if k.OpenAIKey != "" {
		f.OpenAI = config.Service{KeyEnv: "OPENAI_API_KEY", BaseURL: k.OpenAIBaseURL, Model: k.OpenAIModel}
	}
	if k.AnthropicKey != "" {
		f.Anthropic = config.Service{KeyEnv: "ANTHROPIC_API_KEY", BaseURL: k.AnthropicBaseURL, Model: k.AnthropicModel}
	}
	if k.GeminiKey != "" {
		f.Gemini = config.Service{KeyEnv: "GEMINI_API_KEY", Model: k.GeminiModel}
	}
	if k.OllamaBaseURL != "" {
		f.Ollama = config.Service{BaseURL: k.OllamaBaseURL, Model: k.OllamaModel}
	}
	return f
}

// key finds the key of a provider.
func (e *Environment) key(p *config.Provider) (wire.Secret, error) {
	switch {
	case p.KeyEnv != "":
		value, _ := e.lookup(p.KeyEnv)
		if value = strings.TrimSpace(value); value == "" {
			return "", fmt.Errorf("the environment variable %s is not set; set it, or name another in api_key_env", p.KeyEnv)
		}
		return wire.Secret(value), nil
	case p.KeyFile != "":
		text, err := os.ReadFile(p.KeyFile)
		if err != nil {
			return "", fmt.Errorf("api_key_file: %w", err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		if line = strings.TrimSpace(line); line == "" {
			return "", fmt.Errorf("api_key_file: the first line of %s is empty", p.KeyFile)
		}
		return wire.Secret(line), nil
	}
	return "", nil
}

// unknown lists variables that begin like ours and mean nothing. They are no
// error, since container platforms make variables of a service's name.
func unknown(e *Environment) error { return envconfig.CheckDisallowed(prefix, e) }

// doorless refuses settings of the door of a worker that has none.
func (e *Environment) doorless() error {
	if e.HTTP != "" {
		return nil
	}
	var errs []error
	for _, name := range set(map[string]string{"HTTP_KEYS": e.HTTPKeys, "HTTP_KEYS_FILE": e.HTTPKeysFile,
		"ADMIN_KEY": e.AdminKey.Reveal(), "ADMIN_KEY_FILE": e.AdminKeyFile}) {
		errs = append(errs, fmt.Errorf(prefix+"_%s: has no effect without LLMBUS_HTTP; set it, or remove this", name))
	}
	return errors.Join(errs...)
}
