package page_test

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/page"
)

func TestFilesAreServedWithAStrictPolicy(t *testing.T) {
	s := open(t, nil)
	for path, kind := range map[string]string{
		"/": "text/html", "/page/app.js": "text/javascript", "/page/style.css": "text/css", "/page/icon.svg": "image/svg+xml",
	} {
		status, text, h := s.call(http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, h.Get("Content-Type"), kind)
		require.Regexp(t, `^default-src 'none'; script-src 'self'; style-src 'self'; .*frame-ancestors 'none'$`, h.Get("Content-Security-Policy"))
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "DENY", h.Get("X-Frame-Options"))
		require.NotRegexp(t, `innerHTML|insertAdjacentHTML|document\.write|eval\(| style="| on[a-z]+="|<script>`, text, "%s is markup made of text, or inline", path)

		status, _, _ = s.call(http.MethodGet, path, "", "If-None-Match", h.Get("ETag"))
		require.Equal(t, http.StatusNotModified, status)
	}
	for _, path := range []string{"/page/", "/page/nosuch", "/page/../doc.go", "/x"} {
		status, _, _ := s.call(http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, status, path)
	}
	status, _, _ := s.call(http.MethodPost, "/", "{}")
	require.Equal(t, http.StatusMethodNotAllowed, status)
}

func TestViewsComeEverySecondAndAtOnceAfterAChange(t *testing.T) {
	var n atomic.Int64
	s := open(t, func(c *page.Config) {
		c.View = func() any { return n.Add(1) }
		c.Every = time.Hour
	})
	v := s.look()
	var hello struct {
		Admin string `json:"admin"`
	}
	var seen int64
	require.Equal(t, "hello", v.next(&hello))
	require.Equal(t, "locked", hello.Admin)
	require.Equal(t, "view", v.next(&seen), "the first view does not wait for the hour")
	s.page.Changed()
	before := seen
	require.Equal(t, "view", v.next(&seen))
	require.Greater(t, seen, before)

	often := open(t, func(c *page.Config) { c.Every = 10 * time.Millisecond })
	v = often.look()
	v.next(&hello)
	for range 3 {
		var view map[string]string
		require.Equal(t, "view", v.next(&view))
		require.Equal(t, "</script>\nü", view["text"])
	}
}

func TestHelloSaysWhoMayAct(t *testing.T) {
	var hello map[string]string
	open(t, nil).look("Authorization", "Bearer "+secret).next(&hello)
	require.Equal(t, "open", hello["admin"])
	open(t, func(c *page.Config) { c.Key = "" }).look().next(&hello)
	require.Equal(t, "off", hello["admin"])
}

// TestWhoMayLook walks through those who may and may not.
func TestWhoMayLook(t *testing.T) {
	bearer, wrong := []string{"Authorization", "Bearer " + secret}, []string{"Authorization", "Bearer " + secret + "x"}
	for name, tc := range map[string]struct {
		local  bool
		key    string
		header []string
		status int
		says   string
	}{
		"loopback, no key":               {true, secret, nil, 503, "the buckets"},
		"loopback, no key set":           {true, "", nil, 503, "the buckets"},
		"loopback, key":                  {true, secret, bearer, 503, "the buckets"},
		"loopback, wrong key":            {true, secret, wrong, 401, "not the admin key"},
		"loopback, a key and none set":   {true, "", bearer, 401, "not the admin key"},
		"a name that was made loopback":  {true, secret, []string{"Host", "evil.example"}, 401, "admin key is needed"},
		"the same without a key set":     {true, "", []string{"Host", "evil.example"}, 403, "LLMBUS_ADMIN_KEY"},
		"a page of another origin":       {true, secret, []string{"Sec-Fetch-Site", "cross-site"}, 403, "another origin"},
		"somebody behind a proxy here":   {true, secret, []string{"X-Forwarded-For", "192.0.2.1"}, 401, "admin key is needed"},
		"others, no key":                 {false, secret, nil, 401, "admin key is needed"},
		"others, no key set":             {false, "", nil, 403, "LLMBUS_ADMIN_KEY"},
		"others, wrong key":              {false, secret, wrong, 401, "not the admin key"},
		"others, key":                    {false, secret, bearer, 503, "the buckets"},
		"others, key under another name": {false, secret, []string{"X-Api-Key", secret}, 401, "admin key is needed"},
	} {
		s := open(t, func(c *page.Config) { c.Local, c.Key = tc.local, tc.key })
		status, text, _ := s.call(http.MethodGet, "/page/dead", "", tc.header...)
		require.Equal(t, tc.status, status, "%s: %s", name, text)
		require.Contains(t, text, tc.says, name)
		require.NotContains(t, text, secret)
		if tc.status != 503 {
			status, _, _ = s.call(http.MethodGet, "/page/events", "", tc.header...)
			require.Equal(t, tc.status, status, name)
		}
	}
}

func TestViewersAreBounded(t *testing.T) {
	s := open(t, func(c *page.Config) { c.MaxViewers = 2 })
	var hello map[string]string
	first := s.look()
	first.next(&hello)
	s.look().next(&hello)
	status, text, h := s.call(http.MethodGet, "/page/events", "")
	require.Equal(t, []any{http.StatusServiceUnavailable, "10"}, []any{status, h.Get("Retry-After")}, text)
	require.NoError(t, first.resp.Body.Close())
	require.Eventually(t, func() bool {
		resp, err := http.Get(s.url + "/page/events")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusOK
	}, patience, tick, "who leaves makes room")
}

// TestViewerThatDoesNotReadIsCutOff lets a viewer fill its socket.
func TestViewerThatDoesNotReadIsCutOff(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	s := open(t, func(c *page.Config) {
		c.MaxViewers, c.Every, c.WriteTimeout = 1, 10*time.Millisecond, 200*time.Millisecond
		c.View = func() any { return big }
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // it is cut
	_, err = conn.Write([]byte("GET /page/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		resp, err := http.Get(s.url + "/page/events")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusServiceUnavailable
	}, patience, tick, "it holds the only place")
	require.Eventually(t, func() bool {
		resp, err := http.Get(s.url + "/page/events")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusOK
	}, patience, tick, "and loses it")
}

// TestSlowViewerGetsTheNewestView reads nothing for a while, but in time.
func TestSlowViewerGetsTheNewestView(t *testing.T) {
	var n atomic.Int64
	s := open(t, func(c *page.Config) {
		c.Every = 5 * time.Millisecond
		c.View = func() any { return []any{n.Add(1), strings.Repeat("x", 1<<20)} }
	})
	v := s.look()
	var hello map[string]string
	v.next(&hello)
	require.Eventually(t, func() bool { return n.Load() > 50 }, patience, tick)
	at := n.Load()
	var view []any
	for view == nil || view[0].(float64) < float64(at) {
		v.next(&view)
	}
	require.Less(t, view[0].(float64), float64(n.Load()+50))
}

func TestConfigIsChecked(t *testing.T) {
	for text, c := range map[string]page.Config{
		"Conn and View must be set":                          {},
		"the admin key must have at least 16 characters":     {Conn: open(t, nil).nc, View: func() any { return nil }, Key: "short"},
		"MaxViewers, Every and WriteTimeout must not be neg": {Conn: open(t, nil).nc, View: func() any { return nil }, MaxViewers: -1},
	} {
		_, err := page.New(c)
		require.ErrorContains(t, err, text)
	}
}
