package subjects

import (
	"slices"
	"strings"
)

// Shapes of an inbox: a client's own, and the two that the server makes for
// service imports and gateways.
const clientInbox = "_INBOX"

var serverInboxes = []string{"_R_", "_GR_"}

// Inboxes decides which reply subjects a worker answers to. The caller chooses
// the reply subject, so without a check it could aim an answer at a KV key, the
// JetStream API or another request. The zero value accepts the usual inboxes.
type Inboxes struct {
	prefixes []string
	tenants  string
}

// AllowInboxes accepts further prefixes, for callers with a custom inbox
// prefix. A prefix ends at a token boundary: "corp.inbox" accepts
// "corp.inbox.x" and not "corp.inboxes.x". Prefixes that would open "$…" or
// "llm.…" are ignored, since Allowed refuses those first.
func AllowInboxes(prefixes ...string) Inboxes { return Inboxes{prefixes: prefixes} }

// TenantToken stands for the tenant in the prefix of OfTenants.
const TenantToken = "{tenant}"

// OfTenants binds each tenant to inboxes of its own, such as _INBOX.{tenant},
// beside those that the server makes and those of AllowInboxes: in one account a
// user can name the inbox of another as its reply subject. An empty prefix binds
// nobody.
func (in Inboxes) OfTenants(prefix string) Inboxes {
	in.tenants = prefix
	return in
}

// Allowed reports whether an answer may be sent to reply.
func (in Inboxes) Allowed(reply string) bool {
	return in.harmless(reply) && (strings.HasPrefix(reply, clientInbox) || madeByServer(reply) || in.listed(reply))
}

// AllowedTo reports whether an answer for that tenant may be sent to reply. An
// empty tenant is nobody in particular.
func (in Inboxes) AllowedTo(tenant, reply string) bool {
	if tenant == "" || in.tenants == "" {
		return in.Allowed(reply)
	}
	own := strings.Replace(in.tenants, TenantToken, Escape(tenant), 1)
	return in.harmless(reply) && (within(reply, own) || madeByServer(reply) || in.listed(reply))
}

// AllowedByName is AllowedTo for a subject that the caller has written into a
// header or a body, where the server's own inboxes can only be somebody else's.
func (in Inboxes) AllowedByName(tenant, reply string) bool {
	return !madeByServer(reply) && in.AllowedTo(tenant, reply)
}

func (Inboxes) harmless(reply string) bool {
	return reply != "" && reply[0] != '$' && reply != "llm" && !strings.HasPrefix(reply, "llm.") && !strings.ContainsAny(reply, "*> \t\r\n")
}

func (in Inboxes) listed(reply string) bool {
	return slices.ContainsFunc(in.prefixes, func(p string) bool { return within(reply, p) })
}

func madeByServer(reply string) bool {
	return slices.ContainsFunc(serverInboxes, func(p string) bool { return strings.HasPrefix(reply, p) })
}

// within reports whether a subject begins with the tokens of a prefix.
func within(subject, prefix string) bool {
	rest, ok := strings.CutPrefix(subject, strings.TrimSuffix(prefix, "."))
	return ok && strings.HasPrefix(rest, ".")
}
