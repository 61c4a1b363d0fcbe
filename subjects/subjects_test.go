package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/subjects"
)

func TestParseComplete(t *testing.T) {
	for _, tc := range []struct {
		subject, feature, tenant string
		ok                       bool
	}{
		{"llm.complete.support", "support", "", true},
		{"llm.complete.support.acme", "support", "acme", true},
		{"llm.complete.a-b_9", "a-b_9", "", true},
		{"llm.complete.", "", "", false},
		{"llm.complete.Support", "Support", "", false},
		{"llm.complete.-x", "-x", "", false},
		{"llm.complete.support.", "", "", false},
		{"llm.complete.support.a.b", "", "", false},
		{"llm.complete.support.a=2Eb", "support", "a.b", true},
		{"llm.complete.support.a:b", "", "", false},
		{"llm.complete.support.=", "", "", false},
		{"llm.complete.support." + strings.Repeat("a", 129), "", "", false},
		{"llm.cancel.x", "", "", false},
	} {
		feature, tenant, ok := subjects.ParseComplete(tc.subject)
		require.Equal(t, tc.ok, ok, tc.subject)
		require.Equal(t, tc.feature, feature, tc.subject)
		require.Equal(t, tc.tenant, tenant, tc.subject)
	}
}

func TestFeatureLength(t *testing.T) {
	require.True(t, subjects.ValidFeature(strings.Repeat("a", 64)))
	require.False(t, subjects.ValidFeature(strings.Repeat("a", 65)))
}

func TestRoundTrips(t *testing.T) {
	require.Equal(t, "llm.stream.abc", subjects.Stream("", "abc"))
	require.Equal(t, "llm.stream.t=2E1.abc", subjects.Stream("t.1", "abc"))
	id, tenant, ok := subjects.ParseCancel(subjects.CancelOf("a.b*c", "t.1"))
	require.True(t, ok)
	require.Equal(t, []string{"a.b*c", "t.1"}, []string{id, tenant})
	id, tenant, ok = subjects.ParseCancel(subjects.Cancel("a"))
	require.True(t, ok)
	require.Equal(t, []string{"a", ""}, []string{id, tenant})
	require.Equal(t, "llm.replay.abc", subjects.Replay("", "abc"))
	require.Equal(t, "llm.replay.t.abc", subjects.Replay("t", "abc"))
	id, tenant, ok = subjects.ParseResume(subjects.ResumeOf("a.b", "acme"))
	require.True(t, ok)
	require.Equal(t, []string{"a.b", "acme"}, []string{id, tenant})
	for _, bad := range []string{"llm.resume.a.b.c", "llm.resume.a.", "llm.resume.=zz", "llm.resume.a.=20", "llm.resume.a.b:c", "llm.cancel.a"} {
		_, _, ok := subjects.ParseResume(bad)
		require.False(t, ok, bad)
	}
	key := subjects.BreakerKey("openai", "gpt-4.1:mini/x")
	require.Equal(t, "openai.gpt-4=2E1=3Amini=2Fx", key)
	provider, model, ok := subjects.ParseBreakerKey(key)
	require.True(t, ok)
	require.Equal(t, []string{"openai", "gpt-4.1:mini/x"}, []string{provider, model})
	got, ok := subjects.ParseFailure(subjects.Failure(key))
	require.True(t, ok)
	require.Equal(t, key, got)
	provider, model, ok = subjects.ParseBreakerKey(subjects.BreakerKey("groq", ""))
	require.True(t, ok)
	require.Equal(t, []string{"groq", ""}, []string{provider, model})
}

func TestValidRequestID(t *testing.T) {
	require.True(t, subjects.ValidRequestID("9f1c-AZ.~"))
	for _, bad := range []string{"", "a b", "a\n", "é", strings.Repeat("x", 129)} {
		require.False(t, subjects.ValidRequestID(bad), "%q", bad)
	}
}

func TestInboxes(t *testing.T) {
	in := subjects.AllowInboxes("corp.inbox", "$KV.llm_flags", "llm")
	for subject, want := range map[string]bool{
		"_INBOX.abc.def": true, "_INBOX_team.x": true, "_R_.abc": true, "_GR_.abc": true, "corp.inbox.x": true,
		"corp.inboxes.x": false, "corp.inbox": false, "$KV.llm_flags.all": false, "$JS.API.x": false,
		"llm.complete.x": false, "llm": false, "other": false, "": false, "_INBOX.*": false, "_INBOX.>": false, "_INBOX.a b": false,
	} {
		require.Equal(t, want, in.Allowed(subject), subject)
	}
}

func TestInboxesOfTenants(t *testing.T) {
	in := subjects.AllowInboxes("_INBOX.gateway").OfTenants("_INBOX.{tenant}")
	for subject, want := range map[string]bool{
		"_INBOX.acme.x": true, "_INBOX.a=2Eb.x": false, "_INBOX.globex.x": false, "_INBOX.acme": false, "_INBOX.acmes.x": false, "_INBOX.x": false,
		"_R_.abc": true, "_INBOX.gateway.x": true, "_INBOX.acme.*": false, "$KV.x": false, "llm.x": false,
	} {
		require.Equal(t, want, in.AllowedTo("acme", subject), subject)
		require.Equal(t, want && subject != "_R_.abc", in.AllowedByName("acme", subject), subject)
	}
	require.True(t, in.AllowedTo("a.b", "_INBOX.a=2Eb.x"))
	require.True(t, in.AllowedTo("", "_INBOX.globex.x"), "nobody in particular")
	require.True(t, subjects.Inboxes{}.AllowedTo("acme", "_INBOX.globex.x"), "nobody is bound")
}

func TestTenantOf(t *testing.T) {
	for subject, want := range map[string]string{
		"llm.complete.f.acme": "acme", "llm.complete.f": "", "llm.resume.1.a=2Eb": "a.b", "llm.resume.1.a.b": "", "": "", "llm.complete.f.": "",
	} {
		require.Equal(t, want, subjects.TenantOf(subject), subject)
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "=", "a.b", "gpt-4.1:mini", "日本", "\x00\xff", "*", ">"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token := subjects.Escape(s)
		require.Regexp(t, `^[A-Za-z0-9_=-]+$`, token)
		back, ok := subjects.Unescape(token)
		require.True(t, ok)
		require.Equal(t, s, back)
		if text, ok := subjects.Unescape(s); ok {
			require.Equal(t, s, subjects.Escape(text), "one text has one token")
		}
	})
}
