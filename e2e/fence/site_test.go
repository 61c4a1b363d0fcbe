package fence

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
)

const (
	patience = time.Minute // on a busy machine; a test that passes does not wait for it
	tick     = 5 * time.Millisecond
)

// form is one configuration.
type form struct {
	file    string
	dir     string   // another than folder, for one that was changed
	tenants bool     // workers run with LLMBUS_TENANTS
	says    bool     // callers write their tenant into subjects
	jobs    bool     // callers may use jobs
	callers []string // users; the last one attacks
}

var forms = []form{
	{file: "accounts.conf", tenants: true, jobs: true, callers: []string{"acme", "globex"}},
	{file: "users.conf", tenants: true, says: true, callers: []string{"acme", "globex"}},
	{file: "single.conf", jobs: true, callers: []string{"app", "app"}},
}

// tenant is how the server and the workers know a caller; empty without tenants.
func (f form) tenant(user string) string {
	switch {
	case !f.tenants:
		return ""
	case f.says:
		return user
	}
	return strings.ToUpper(user)
}

const policy = `
data_rules: {classes: [open, secret]}
breaker: {threshold: 2, window: 30s, cool_down: 200ms, max_cool_down: 200ms, probe_timeout: 1s}
limits: {default: {requests_per_minute: 100000, requests_per_hour: 100000, requests_per_day: 100000, concurrent: 500}}
providers:
  sim: {kind: openai, base_url: %[1]s/v1, approved_for: [open], models: {good: {}, sim-ok-t40-g4ms: {}, sim-hang: {}, fragile: {}}}
features:
  default: {timeout: 20s, data_class: open, targets: [{provider: sim, model: good}], fallback: [cached, queue], jobs: {backoff: [100ms]}}
  slow: {timeout: 20s, data_class: open, targets: [{provider: sim, model: sim-ok-t40-g4ms}]}
  silent: {timeout: 20s, data_class: open, targets: [{provider: sim, model: sim-hang}]}
  fragile: {timeout: 20s, data_class: open, targets: [{provider: sim, model: fragile, attempts: 1}]}
`

func policyOf(s *sim.Server) string { return fmt.Sprintf(policy, s.URL()) }

// site is a server with one of the configurations, and what runs on it.
type site struct {
	form
	*natstest.Listener
	sim     *sim.Server
	options *server.Options   // as the configuration has them
	creds   map[string]string // files of users, where the server knows them by JWTs
	names   map[string]string // of their tenants there
}

// passwords of the users, as the environment of the server has them.
func passwords(t *testing.T) {
	for _, user := range []string{"WORKER", "OPERATOR", "ACME", "GLOBEX", "APP"} {
		t.Setenv(user+"_PASSWORD", "pw-"+strings.ToLower(user))
	}
}

// load reads a configuration for a server of this test.
func load(t *testing.T, path string) *server.Options {
	t.Helper()
	passwords(t)
	opts, err := server.ProcessConfigFile(path)
	require.NoError(t, err)
	return opts
}

// changed writes a configuration anew, with each old text replaced by the new
// one, and returns its folder.
func changed(t *testing.T, file string, oldnew ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{file, "worker.conf"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		if name == file {
			text = []byte(strings.NewReplacer(oldnew...).Replace(string(text)))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}

// folder holds the configurations.
var folder = filepath.Join("..", "..", "deploy", "nats")

// serve starts a server with a configuration.
func serve(t *testing.T, f form) *site {
	t.Helper()
	opts := load(t, filepath.Join(cmp.Or(f.dir, folder), f.file))
	return &site{form: f, options: opts, sim: simtest.Start(t), Listener: natstest.ListenServer(t, func(o *server.Options) {
		opts.Host, opts.Port, opts.StoreDir = o.Host, o.Port, o.StoreDir
		*o = *opts
	})}
}

// work starts n workers, each a process's worth, and waits for them.
func (s *site) work(t *testing.T, n int, log *lines) {
	t.Helper()
	for range n {
		env := app.Defaults(s.ClientURL())
		env.NatsInbox, env.Tenants = "_INBOX.worker", s.tenants
		if env.NatsCreds = s.creds["worker"]; s.creds == nil {
			env.NatsUser, env.NatsPassword = "worker", "pw-worker"
		}
		if s.tenants {
			env.TenantInbox, env.InboxPrefixes = "_INBOX.{tenant}", []string{"_INBOX.operator"}
		}
		ready := make(chan struct{})
		ctx, stop := context.WithCancel(context.Background())
		worker := app.New(env, app.Options{
			Log: slog.New(slog.NewTextHandler(log, nil)), Config: []byte(policyOf(s.sim)), Ready: func() { close(ready) }})
		ended := make(chan error, 1)
		var running sync.WaitGroup
		running.Go(func() { ended <- worker.Run(ctx) })
		t.Cleanup(func() {
			stop()
			running.Wait()
		})
		select {
		case <-ready:
		case err := <-ended:
			require.NoError(t, err, "%s", log)
		case <-time.After(patience):
			require.Fail(t, "the worker is not ready", "%s", log)
		}
	}
}

// dial connects a user, whose violations of permissions come to nothing.
func (s *site) dial(t *testing.T, user string) *nats.Conn {
	t.Helper()
	opts := []nats.Option{nats.UserInfo(user, "pw-"+user), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if s.creds != nil {
		opts[0] = nats.UserCredentials(s.creds[user])
	}
	if s.says || user == "operator" {
		opts = append(opts, nats.CustomInboxPrefix("_INBOX."+user))
	}
	return s.Listener.Dial(opts...)
}

// client asks as that user.
func (s *site) client(t *testing.T, nc *nats.Conn, user string) *client.Client {
	t.Helper()
	opts := []client.Option{client.WithTimeout(patience)}
	if s.says {
		opts = append(opts, client.WithTenant(s.tenant(user)))
	}
	c, err := client.New(nc, opts...)
	require.NoError(t, err)
	return c
}

func question(feature, text string) *llm.Request {
	return &llm.Request{Feature: feature, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(text)}}}
}

func flush(t *testing.T, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, nc.FlushWithContext(ctx))
}

// lines collects what is written by many goroutines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
