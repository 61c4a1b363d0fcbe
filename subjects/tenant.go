package subjects

import "strings"

// A tenant is one token of a subject. Where tenants are accounts, an import adds
// the name of the account as the last token of what a caller publishes, and
// takes it out of what a caller listens to; where they are users of one account,
// or the publisher is trusted, the publisher writes it. Either way the server
// has checked the subject, so workers believe the token and nothing else.

// ValidTenant reports whether a tenant may have that name: the rule is that of
// ValidRequestID.
func ValidTenant(name string) bool { return ValidRequestID(name) }

// TenantRule says in words what ValidTenant accepts.
const TenantRule = "at most 128 printable ASCII characters without space"

// ofTenant appends the tenant to a subject, if there is one.
func ofTenant(subject, tenant string) string {
	if tenant == "" {
		return subject
	}
	return subject + "." + Escape(tenant)
}

// owned are the last tokens of a subject that belongs to a tenant and is
// listened to.
func owned(tenant, id string) string {
	if tenant == "" {
		return Escape(id)
	}
	return Escape(tenant) + "." + Escape(id)
}

// parse splits <prefix><name> and <prefix><name>.<tenant>. A token that is not
// the one of a valid tenant's name is refused, so that the subjects that are
// made of the name later hold the same token.
func parse(subject, prefix string) (name, tenant string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix)
	if !ok {
		return "", "", false
	}
	name, token, hasTenant := strings.Cut(rest, ".")
	if !hasTenant {
		return name, "", true
	}
	tenant, ok = Unescape(token)
	return name, tenant, ok && ValidTenant(tenant)
}

// TenantOf is the tenant in the subject of a request, a reader, a cancel or a
// job; empty if there is none.
func TenantOf(subject string) string {
	for range 3 {
		var more bool
		if _, subject, more = strings.Cut(subject, "."); !more {
			return ""
		}
	}
	tenant, ok := Unescape(subject)
	if !ok || !ValidTenant(tenant) {
		return ""
	}
	return tenant
}

func parseID(subject, prefix string) (id, tenant string, ok bool) {
	token, tenant, ok := parse(subject, prefix)
	if !ok {
		return "", "", false
	}
	id, ok = Unescape(token)
	return id, tenant, ok
}
