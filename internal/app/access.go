package app

import (
	"strings"

	"github.com/llmbus/llmbus/subjects"
)

// validInbox reports whether a prefix of inboxes may be used: workers answer to
// inboxes alone.
func validInbox(prefix string) bool {
	rest, ok := strings.CutPrefix(prefix, "_INBOX")
	return prefix == "" || ok && (rest == "" || rest[0] == '.') && (subjects.Inboxes{}).Allowed(prefix+".x") && !strings.Contains(prefix+".", "..")
}
