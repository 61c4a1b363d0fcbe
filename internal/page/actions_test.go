package page_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/page"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

func TestSwitchesAreFlippedAndCleared(t *testing.T) {
	s := open(t, nil)
	s.furnish()
	flags := func() []kv.Flag {
		set, err := kv.ReadFlags(t.Context(), s.b.Flags)
		require.NoError(t, err)
		return set.List()
	}
	for to, want := range map[string]kv.Flag{"off": {}, "off now": {Now: true}, "on": {On: true}} {
		status, text := s.post("/page/switch", `{"flag":"feature.support","to":"`+to+`","reason":"incident\n 123","by":"ann"}`)
		require.Equal(t, http.StatusOK, status, text)
		f := flags()[0]
		require.Equal(t, kv.Flag{Key: "feature.support", On: want.On, Now: want.Now, By: "ann", Reason: "incident 123", Revision: f.Revision, Set: f.Set}, f)
	}
	status, _ := s.post("/page/switch", `{"flag":"feature.support","to":"clear"}`)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, flags())
	_, err := s.b.Flags.Put(t.Context(), "nothing.that.is", []byte("off"))
	require.NoError(t, err)
	status, _ = s.post("/page/switch", `{"flag":"nothing.that.is","to":"clear"}`)
	require.Equal(t, http.StatusOK, status, "what has no effect can be cleared")
	status, _ = s.post("/page/switch", `{"flag":"all","to":"off","reason":"x"}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "page", flags()[0].By, "who does not say who")
}

func TestBadSwitchesAreRefused(t *testing.T) {
	s := open(t, nil)
	s.furnish()
	for body, says := range map[string]string{
		`{"flag":"feature.x","to":"off"}`:                         "reason: say why",
		`{"flag":"feature.x","to":"off","reason":" "}`:            "reason: say why",
		`{"flag":"feature.x","to":"off","reason":"x","by":"a b"}`: "must be one word",
		`{"flag":"feature.x","to":"of","reason":"x"}`:             "to: must be on, off, off now or clear",
		`{"flag":"nothing","to":"off","reason":"x"}`:              "not one of all",
		`{"flag":"feature.>","to":"off","reason":"x"}`:            "not an escaped name",
		`{"flag":"a b","to":"clear"}`:                             "can be no key",
		`{"flag":"","to":"clear"}`:                                "can be no key",
		`{"flag":"feature.x","to":"off","reason":"x","more":1}`:   "unknown field",
		`[]`:                      "not what is asked for",
		`{"flag":"` + long + `"}`: "too large",
		`{"flag":"all","to":"off","reason":"` + long[:600] + `"}`: "at most 500 bytes",
	} {
		status, text := s.post("/page/switch", body)
		require.Equal(t, http.StatusBadRequest, status, "%.100s: %s", body, text)
		require.Contains(t, text, says)
	}
	set, err := kv.ReadFlags(t.Context(), s.b.Flags)
	require.NoError(t, err)
	require.Empty(t, set.List())
}

var long = strings.Repeat("x", 70_000)

// TestNobodyElseActs tries what another site, a form or a stranger could.
func TestNobodyElseActs(t *testing.T) {
	flip := `{"flag":"all","to":"off","reason":"x"}`
	for name, tc := range map[string]struct {
		key    string
		header []string
		status int
		says   string
	}{
		"no key":                       {secret, nil, 401, "admin key is needed"},
		"wrong key":                    {secret, []string{"Authorization", "Bearer 0123456789abcdeX"}, 401, "not the admin key"},
		"no key set":                   {"", []string{"Authorization", "Bearer "}, 403, "read-only"},
		"another origin":               {secret, []string{"Authorization", "Bearer " + secret, "Origin", "https://evil.example"}, 403, "another origin"},
		"another site, by the browser": {secret, []string{"Authorization", "Bearer " + secret, "Sec-Fetch-Site", "cross-site"}, 403, "another origin"},
		"a form":                       {secret, []string{"Authorization", "Bearer " + secret, "Content-Type", "text/plain"}, 415, "application/json"},
		"basic":                        {secret, []string{"Authorization", "Basic " + secret}, 401, "admin key is needed"},
	} {
		s := open(t, func(c *page.Config) { c.Key = tc.key })
		s.furnish()
		for _, path := range []string{"/page/switch", "/page/replay"} {
			status, text, _ := s.call(http.MethodPost, path, flip, tc.header...)
			require.Equal(t, tc.status, status, "%s: %s", name, text)
			require.Contains(t, text, tc.says, name)
		}
		status, _, _ := s.call(http.MethodGet, "/page/switch", "", "Authorization", "Bearer "+secret)
		require.Equal(t, http.StatusMethodNotAllowed, status)
		set, err := kv.ReadFlags(t.Context(), s.b.Flags)
		require.NoError(t, err)
		require.Empty(t, set.List(), name)
	}
}

func TestDeadLettersAreListedAndReplayed(t *testing.T) {
	s := open(t, nil)
	s.furnish()
	s.dead("support", "j1", `{"id":"j1","feature":"support","error":{"code":"unavailable","message":"m"},"tries":5,"request":{"prompt":"a secret"}}`)
	s.dead("support", "j2", `{"id":"j2","feature":"support","error":{"code":"unavailable","message":"m"},"request":{"prompt":"b"}}`)
	s.dead("chat", "j3", `{"id":"j3","feature":"chat","error":{"code":"invalid_request","message":"m"}}`)
	status, text, _ := s.call(http.MethodGet, "/page/dead", "")
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, text, "secret", "what was asked is nobody's business here")
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list, 3)
	require.Equal(t, []any{"j1", "support", "unavailable", "m", 5.0}, []any{list[0]["id"], list[0]["feature"], list[0]["code"], list[0]["message"], list[0]["tries"]})

	for _, body := range []string{`{}`, `{"all":true,"jobs":[{"id":"j1","feature":"support"}]}`} {
		status, text = s.post("/page/replay", body)
		require.Equal(t, http.StatusBadRequest, status, text)
	}
	status, text = s.post("/page/replay", `{"jobs":[{"id":"j1","feature":"support"},{"id":"j2","feature":"chat"}]}`)
	require.Equal(t, []any{http.StatusOK, "{\"replayed\":1,\"failed\":0}\n"}, []any{status, text}, "a name is the id with its feature")
	status, text = s.post("/page/replay", `{"all":true}`)
	require.Equal(t, []any{http.StatusOK, "{\"replayed\":1,\"failed\":1}\n"}, []any{status, text}, "the third holds no request")
	queue, err := s.js.Stream(t.Context(), subjects.JobsStream)
	require.NoError(t, err)
	require.EqualValues(t, 2, queue.CachedInfo().State.Msgs)
}

// TestActionsSayThatNATSIsAway covers a fleet that was never started.
func TestActionsSayThatNATSIsAway(t *testing.T) {
	s := open(t, nil)
	for path, body := range map[string]string{"/page/switch": `{"flag":"all","to":"off","reason":"x"}`, "/page/replay": `{"all":true}`} {
		status, text := s.post(path, body)
		require.Equal(t, http.StatusServiceUnavailable, status, text)
		require.Contains(t, text, "has a worker run on this NATS?")
	}
}
