package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/subjects"
)

// FuzzNames checks that no name makes more than one token, and that whatever is
// made is read back.
func FuzzNames(f *testing.F) {
	f.Add("a.b", "*")
	f.Add("", ">")
	f.Add("gpt-4.1:mini", "$KV.x\r\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		id, tenant, ok := subjects.ParseCancel(subjects.CancelOf(a, b))
		require.Equal(t, b == "" || subjects.ValidTenant(b), ok)
		if ok {
			require.Equal(t, []string{a, b}, []string{id, tenant})
		}
		require.Equal(t, 2, strings.Count(subjects.Stream("", a), "."))
		key := subjects.BreakerKey(a, b)
		provider, model, ok := subjects.ParseBreakerKey(key)
		require.True(t, ok)
		require.Equal(t, []string{a, b}, []string{provider, model})
		usage := subjects.UsageKey("2026-11-30", a, "f", "p", b, "w")
		require.Equal(t, 5, strings.Count(usage, "."))
		day, parts, ok := subjects.ParseUsageKey(usage)
		require.True(t, ok)
		require.Equal(t, "2026-11-30", day)
		require.Equal(t, [5]string{a, "f", "p", b, "w"}, parts)
		again, ok := subjects.ParseFailure(subjects.Failure(key))
		require.True(t, ok)
		require.Equal(t, key, again)
	})
}

// FuzzParse checks that what is read of any subject is made again, and that no
// answer goes to what could do harm.
func FuzzParse(f *testing.F) {
	f.Add("llm.complete.f.tenant")
	f.Add("_INBOX.x")
	f.Add("$KV.llm_flags.all")
	f.Fuzz(func(t *testing.T, subject string) {
		if feature, tenant, ok := subjects.ParseComplete(subject); ok {
			require.True(t, subjects.ValidFeature(feature))
			require.Equal(t, subject, subjects.CompleteOf(feature, tenant))
		}
		if id, tenant, ok := subjects.ParseCancel(subject); ok {
			require.Equal(t, subject, subjects.CancelOf(id, tenant))
		}
		if subjects.AllowInboxes("corp.inbox").Allowed(subject) {
			require.NotRegexp(t, `^(\$|llm(\.|$))|[*> \t\r\n]`, subject)
			require.Regexp(t, `^(_INBOX|_R_|_GR_|corp\.inbox\.)`, subject)
		}
	})
}

func FuzzLimitCounter(f *testing.F) {
	f.Add("acme", "support", int64(7))
	f.Add("", "", int64(-1))
	f.Add("a.b*>", "=", int64(1<<62))
	f.Fuzz(func(t *testing.T, tenant, feature string, number int64) {
		key := subjects.LimitKey("minute", tenant, feature, "tokens")
		subject := subjects.LimitCounter(key, number)
		require.Equal(t, 7, strings.Count(subject, ".")+1)
		got, n, ok := subjects.ParseLimitCounter(subject)
		require.True(t, ok)
		require.Equal(t, key, got)
		require.Equal(t, number, n)
		w, te, fe, kind, ok := subjects.ParseLimitKey(got)
		require.True(t, ok)
		require.Equal(t, []string{"minute", tenant, feature, "tokens"}, []string{w, te, fe, kind})
		te, fe, ok = subjects.ParseSlotKey(subjects.SlotKey(tenant, feature))
		require.True(t, ok)
		require.Equal(t, []string{tenant, feature}, []string{te, fe})
	})
}
