package app

import (
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
