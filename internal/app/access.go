package app

import (
	"errors"
	"net"
	"strings"

	"github.com/llmbus/llmbus/subjects"
)

// inboxes are where answers may go.
func (e *Environment) inboxes() subjects.Inboxes {
	return subjects.AllowInboxes(e.InboxPrefixes...).OfTenants(e.TenantInbox)
}

func (e *Environment) refuseInboxes(refuse func(bool, string, ...any)) {
	refuse(!validInbox(e.NatsInbox), "NATS_INBOX: must be _INBOX or tokens behind it, such as _INBOX.worker, not %q", e.NatsInbox)
	refuse(e.TenantInbox != "" && !e.Tenants, "TENANT_INBOX: needs LLMBUS_TENANTS")
	refuse(e.TenantInbox != "" && (!strings.Contains(e.TenantInbox+".", "."+subjects.TenantToken+".") || !validInbox(strings.Replace(e.TenantInbox, subjects.TenantToken, "x", 1))),
		"TENANT_INBOX: must be tokens behind _INBOX with %s as one of them, such as _INBOX.%[1]s, not %[2]q", subjects.TenantToken, e.TenantInbox)
}

// validInbox reports whether a prefix of inboxes may be used: workers answer to
// inboxes alone.
func validInbox(prefix string) bool {
	rest, ok := strings.CutPrefix(prefix, "_INBOX")
	return prefix == "" || ok && (rest == "" || rest[0] == '.') && (subjects.Inboxes{}).Allowed(prefix+".x") && !strings.Contains(prefix+".", "..")
}

// refuseEmbedded refuses what the embedded server cannot do, or must not.
func (e *Environment) refuseEmbedded(refuse func(bool, string, ...any)) {
	for _, name := range append(e.logins(), e.tlsSettings()...) {
		own := name == "NATS_USER" || name == "NATS_TOKEN"
		refuse(!own, "%s: is for a NATS server of your own; set LLMBUS_NATS_URL, or remove it", name)
	}
	refuse(e.NatsUser != "" && e.NatsPassword == "", "NATS_USER: needs LLMBUS_NATS_PASSWORD, which the embedded server will ask for")
	refuse(e.KVReplicas > 1, "KV_REPLICAS: the embedded server is alone; set LLMBUS_NATS_URL, or remove it")
	if _, port, err := net.SplitHostPort(e.listen()); err != nil || port == "" {
		refuse(true, "LISTEN: must be host:port, such as %s", defaultListen)
	} else if err := loopback(e.listen()); e.NatsUser == "" && e.NatsToken == "" {
		refuse(err != nil, "LISTEN: %w", err)
	}
}

// errOpenToAll is what an embedded server without a login is refused for.
var errOpenToAll = errors.New("must be a loopback address, since the embedded server asks nobody who he is; set LLMBUS_NATS_USER and LLMBUS_NATS_PASSWORD, " +
	"or LLMBUS_NATS_TOKEN, for it to ask; or run a NATS server for others and set LLMBUS_NATS_URL")

// loopback refuses an address that others can reach.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errOpenToAll
}
