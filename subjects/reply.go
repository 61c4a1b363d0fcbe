package subjects

import "strings"

// replyPrefixes are the shapes of an inbox: a client's own, and the two that
// the server makes for service imports and gateways.
var replyPrefixes = []string{"_INBOX", "_R_", "_GR_"}

// Inboxes decides which reply subjects a worker answers to. The caller chooses
// the reply subject, so without a check it could aim an answer at a KV key, the
// JetStream API or another request. The zero value accepts the usual inboxes.
type Inboxes struct {
	prefixes []string
}

// AllowInboxes accepts further prefixes, for callers with a custom inbox
// prefix. A prefix ends at a token boundary: "corp.inbox" accepts
// "corp.inbox.x" and not "corp.inboxes.x". Prefixes that would open "$…" or
// "llm.…" are ignored, since Allowed refuses those first.
func AllowInboxes(prefixes ...string) Inboxes { return Inboxes{prefixes: prefixes} }

// Allowed reports whether an answer may be sent to reply.
func (in Inboxes) Allowed(reply string) bool {
	if reply == "" || reply[0] == '$' || reply == "llm" || strings.HasPrefix(reply, "llm.") || strings.ContainsAny(reply, "*> \t\r\n") {
		return false
	}
	for _, p := range replyPrefixes {
		if strings.HasPrefix(reply, p) {
			return true
		}
	}
	for _, p := range in.prefixes {
		if rest, ok := strings.CutPrefix(reply, strings.TrimSuffix(p, ".")); ok && strings.HasPrefix(rest, ".") {
			return true
		}
	}
	return false
}
