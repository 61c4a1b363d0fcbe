package gateway_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// TestPermissions serves with the permissions that docs/security.md gives a
// gateway, and no others.
func TestPermissions(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "worker", Password: "w"}, {Username: "gateway", Password: "g", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"llm.complete.*.*", "llm.cancel.*.*", "llm.status"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.gateway.>", "llm.stream.*.*"}},
		}}}
		o.NoAuthUser = "worker"
	})
	p := fake.New(fake.Answer("one", "two"))
	work(t, srv, bus.Config{Completer: model{p}, Tenants: true,
		Inboxes: subjects.AllowInboxes("_INBOX.gateway").OfTenants("_INBOX.{tenant}")})
	secret, keys := newKey(t, "acme")
	refused := make(chan error, 8)
	nc := srv.Dial(nats.UserInfo("gateway", "g"), nats.CustomInboxPrefix("_INBOX.gateway"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	s, err := gateway.New(gateway.Config{Conn: nc, Keys: keys})
	require.NoError(t, err)
	r := serve(t, srv, nc, s)
	for _, body := range []string{hello, helloStream} {
		require.Equal(t, 200, r.ask(t, body, "Authorization", "Bearer "+secret).status)
	}
	require.Equal(t, 200, r.get(t, "/v1/models", "Authorization", "Bearer "+secret).status)
	p.Play(fake.Hangs())
	got := r.ask(t, helloStream, "Authorization", "Bearer "+secret, "X-Llmbus-Timeout-Ms", "100")
	require.Equal(t, 504, got.status)
	require.Eventually(t, func() bool { return p.Running() == 0 }, patience, tick)
	require.Empty(t, refused)
}
