package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/subjects"
)

func TestParseFlag(t *testing.T) {
	for value, want := range map[string]Flag{
		"off":                          {},
		"OFF\n":                        {},
		" False ":                      {},
		"0":                            {},
		"on":                           {On: true},
		"True":                         {On: true},
		"1":                            {On: true},
		"off now":                      {Now: true},
		"Off\tNOW":                     {Now: true},
		"off now provider incident 12": {Now: true, Reason: "provider incident 12"},
		"off provider incident 12":     {Reason: "provider incident 12"},
		"off nowhere to go":            {Reason: "nowhere to go"},
		"off @ada  too dear":           {By: "ada", Reason: "too dear"},
		"off now @ada":                 {Now: true, By: "ada"},
		"on @ada well again":           {On: true, By: "ada", Reason: "well again"},
		"on now":                       {On: true, Reason: "now"},
		"":                             {Unrecognised: true},
		"offf":                         {Unrecognised: true},
		"enabled":                      {Unrecognised: true},
		`{"off":true}`:                 {Unrecognised: true},
	} {
		want.Key = "all"
		require.Equal(t, want, parseFlag("all", value), "%q", value)
	}
}

func TestParseKey(t *testing.T) {
	for key, want := range map[string]struct {
		scope scope
		names pair
	}{
		"all":                                {scopeAll, pair{}},
		"feature.support":                    {scopeFeature, pair{"support", ""}},
		"provider.open=2Eai":                 {scopeProvider, pair{"open.ai", ""}},
		ModelKey("openai", "gpt-4.1:mini/x"): {scopeModel, pair{"openai", "gpt-4.1:mini/x"}},
		TenantKey("acme.eu"):                 {scopeTenant, pair{"acme.eu", ""}},
		FeatureTenantKey("tenant", "tenant"): {scopeFeatureTenant, pair{"tenant", "tenant"}},
		FailoverKey("", ""):                  {scopeFailover, pair{}},
		FailoverKey("support", ""):           {scopeFailover, pair{"support", ""}},
		FailoverKey("support", "日本"):         {scopeFailover, pair{"support", "日本"}},
	} {
		scope, names, err := parseKey(key)
		require.NoError(t, err, key)
		require.Equal(t, want.scope, scope, key)
		require.Equal(t, want.names, names, key)
	}
	for _, key := range []string{"", "All", "all.x", "feature", "feature.", "feature.a.b", "feature.a.b.c", "model.openai",
		"model.openai.gpt-4.1", "failover.a.b", "tenant.a.b", "feature.a=2", "feature.=41", "other"} {
		_, _, err := parseKey(key)
		require.Error(t, err, key)
	}
}

func TestFlagSet(t *testing.T) {
	s := ParseFlags(map[string]string{
		"feature.support": "off", "feature.chat": "on", "tenant.acme": "off now", "feature.chat.tenant.odd=2Eco": "off",
		"provider.groq": "off", "model.openai.gpt-4=2E1": "off now", "failover.support": "0", "failover.chat.tenant.acme": "off",
		"feature.x": "maybe", "feature.x.y": "off",
	})
	for _, tc := range []struct {
		feature, tenant, key string
		now                  bool
	}{
		{"support", "", "feature.support", false},
		{"support", "other", "feature.support", false},
		{"support", "acme", "tenant.acme", true},
		{"chat", "acme", "tenant.acme", true},
		{"chat", "odd.co", "feature.chat.tenant.odd=2Eco", false},
		{"x", "", "feature.x", false},
	} {
		flag, off := s.Off(tc.feature, tc.tenant)
		require.True(t, off, "%+v", tc)
		require.Equal(t, tc.key, flag.Key)
		require.Equal(t, tc.now, flag.Now)
	}
	for _, on := range []pair{{"chat", ""}, {"chat", "other"}, {"unknown", ""}} {
		_, off := s.Off(on.a, on.b)
		require.False(t, off, "%+v", on)
	}
	require.True(t, s.TargetOff("groq", "any"))
	require.False(t, s.TargetOffNow("groq", "any"))
	require.True(t, s.TargetOff("openai", "gpt-4.1"))
	require.True(t, s.TargetOffNow("openai", "gpt-4.1"))
	require.False(t, s.TargetOff("openai", "gpt-5"))
	require.True(t, s.FailoverOff("support", "any"))
	require.True(t, s.FailoverOff("chat", "acme"))
	require.False(t, s.FailoverOff("chat", ""))
	require.True(t, ParseFlags(map[string]string{"failover": "off"}).FailoverOff("any", ""))
	_, off := ParseFlags(map[string]string{"all": "off"}).Off("any", "any")
	require.True(t, off)
	require.Equal(t, []string{"feature.x"}, s.Unrecognised())
	require.Equal(t, []string{"feature.x.y"}, s.Malformed())
	require.Len(t, s.List(), 9)
}

func TestFlagValueReadsBack(t *testing.T) {
	for _, f := range []Flag{
		{}, {On: true}, {Now: true}, {Reason: "too dear"}, {Now: true, By: "ada", Reason: "incident 12"}, {On: true, By: "ada"},
	} {
		f.Key = AllKey
		value, err := f.value()
		require.NoError(t, err)
		require.Equal(t, f, parseFlag(AllKey, value))
	}
	for _, f := range []Flag{{Reason: "now and then"}, {Reason: "@home"}, {By: "a b"}, {On: true, Now: true}} {
		_, err := f.value()
		require.Error(t, err, "%+v", f)
	}
}

func FuzzFlag(f *testing.F) {
	for _, s := range []string{"all", "feature.a.tenant.b", "failover.=", "off now @x y", "=", "..", "model.a.b"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		s := ParseFlags(map[string]string{key: value})
		require.Equal(t, 1, len(s.List())+len(s.Malformed()))
		s.Off(key, value)
		flag := parseFlag(key, value)
		require.False(t, flag.Unrecognised && flag.On, "what is not understood is off")
		flag, off := ParseFlags(map[string]string{FeatureTenantKey(key, value): "off"}).Off(key, value)
		require.Equal(t, value != "", off)
		if off {
			require.Equal(t, "feature."+subjects.Escape(key)+".tenant."+subjects.Escape(value), flag.Key)
		}
	})
}

func BenchmarkFlagSetOff(b *testing.B) {
	s := ParseFlags(map[string]string{"feature.other": "off", "tenant.other": "off", "feature.support.tenant.other": "off", "model.a.b": "off"})
	b.ReportAllocs()
	for b.Loop() {
		if _, off := s.Off("support", "acme"); off {
			b.Fatal("off")
		}
	}
}
