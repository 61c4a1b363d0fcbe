package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatIsSent(t *testing.T) {
	headers := http.Header{"User-Agent": {"llmbus"}, "X-Two": {"a", "b"}, "Authorization": {"Bearer k\r\nX-Evil: 1"}}
	for raw, want := range map[string]string{
		"http://h.test/v1/chat?api-version=1": "POST /v1/chat?api-version=1 HTTP/1.1\r\nHost: h.test\r\nUser-Agent: llmbus\r\n" +
			"Authorization: Bearer k  X-Evil: 1\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: ",
		"https://h.test:8443":      "POST / HTTP/1.1\r\nHost: h.test:8443\r\n",
		"http://[fe80::1%25en0]/a": "POST /a HTTP/1.1\r\nHost: [fe80::1]\r\n",
		"http://h.test/a%2Fb":      "POST /a%2Fb HTTP/1.1\r\nHost: h.test\r\n",
	} {
		require.Contains(t, string(endpoint(t, raw, headers).head), want)
	}
	require.Equal(t, host{"h.test:443", "h.test", true}, endpoint(t, "https://h.test/", nil).host)
	require.Equal(t, host{"[fe80::1%en0]:80", "fe80::1%en0", false}, endpoint(t, "http://[fe80::1%25en0]/", nil).host)
	for _, u := range []url.URL{{Scheme: "http", Host: ":80"}, {Scheme: "ftp", Host: "h.test"}} {
		_, err := NewEndpoint(&u, nil)
		require.ErrorIs(t, err, errNoPlace)
	}
}

func TestOneConnectionServesManyCalls(t *testing.T) {
	for name, answer := range map[string]string{
		"length":          good,
		"chunks":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\nX-Trailer: 1\r\n\r\n",
		"after 1xx":       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n" + good,
		"bare line feeds": strings.ReplaceAll(good, "\r", ""),
	} {
		for _, size := range []int{1, atOnce, atOnce + 1, 1 << 20} {
			s, c := serve(t, answering(answer)), newClient(t, nil)
			for range 3 {
				said, err := ask(t, c, s, strings.Repeat("x", size))
				require.NoError(t, err, name)
				require.Equal(t, "{}", said)
			}
			conns, requests := s.counts()
			require.Equal(t, 1, conns, "%s, %d", name, size)
			require.Equal(t, 3, requests)
			require.EqualValues(t, size, s.asked[0].ContentLength)
		}
	}
}

// TestConnectionsThatMustNotServeAgain are those whose next bytes could be
// anything but the answer of the next call.
func TestConnectionsThatMustNotServeAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"said so":              "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.0":             "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"an answer too many":   good + good,
		"another protocol":     "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"half an answer more":  good + "HTTP/1.1 200 OK\r\nContent-Le",
		"more than the length": good + strings.Repeat("x", 2*readBuffer),
	} {
		s, c := serve(t, answering(answer)), newClient(t, nil)
		for range 2 {
			said, err := ask(t, c, s, "{}")
			require.NoError(t, err, name)
			require.True(t, said == "{}" || strings.Contains(answer, "101"), said)
		}
		conns, _ := s.counts()
		require.Equal(t, 2, conns, name)
	}
}

// TestAPeerThatSpeaksLater sends an answer too many, or its good-bye, once the connection is idle.
func TestAPeerThatSpeaksLater(t *testing.T) {
	for name, later := range map[string]func(net.Conn){
		"answer":   func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen") },
		"good-bye": func(c net.Conn) { _ = c.Close() },
	} {
		idle, done := make(chan struct{}), make(chan struct{})
		s := serve(t, func(s *server, number int, c net.Conn) {
			r := bufio.NewReader(c)
			s.request(r)
			_, _ = io.WriteString(c, good)
			if number == 1 {
				<-idle
				later(c)
				close(done)
			}
			s.request(r)
		})
		c := newClient(t, nil)
		_, err := ask(t, c, s, "{}")
		require.NoError(t, err)
		close(idle)
		<-done
		require.Eventually(t, func() bool { return !peekIdle(c) }, 5*time.Second, time.Millisecond)
		said, err := ask(t, c, s, "{}")
		require.NoError(t, err, name)
		require.Equal(t, "{}", said, name)
		conns, _ := s.counts()
		require.Equal(t, 2, conns)
	}
}

// peekIdle reports whether the one idle connection is still silent. It may
// swallow a byte, which is why it is put back only for a look.
func peekIdle(c *Client) bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, kept := range c.pool.idle {
		for _, cn := range kept {
			return cn.quiet()
		}
	}
	return false
}

// TestALeftoverWithinTLS is what a look at the socket cannot show: the answer too
// many came in the record of the first.
func TestALeftoverWithinTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", s.TLS)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); (&server{}).request(r); {
					// The head fills the buffer, so that the rest stays within TLS.
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"+strings.Repeat("x", 5000)+good)
				}
			}()
		}
	}()
	c := newClient(t, func(cfg *Config) {
		cfg.TLS = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	})
	for range 3 {
		resp, err := c.Post(t.Context(), endpoint(t, "https://"+l.Addr().String(), nil), []byte("{}"))
		require.NoError(t, err)
		said, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Len(t, said, 5000)
		require.EqualValues(t, 5000, resp.ContentLength)
	}
}

func TestTLSConnectionsServeAgain(t *testing.T) {
	opened := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, to http.ConnState) {
		if to == http.StateNew {
			opened++
		}
	}
	s.StartTLS()
	defer s.Close()
	c := newClient(t, func(cfg *Config) {
		cfg.TLS = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	})
	for range 5 {
		resp, err := c.Post(t.Context(), endpoint(t, s.URL, nil), []byte("{}"))
		require.NoError(t, err)
		said, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1", string(said))
	}
	require.Equal(t, 1, opened)
}

func TestALostCallIsNotRepeated(t *testing.T) {
	s := serve(t, func(s *server, _ int, c net.Conn) {
		r := bufio.NewReader(c)
		s.request(r)
		_, _ = io.WriteString(c, good)
		s.request(r) // and no answer
	})
	c := newClient(t, nil)
	_, err := ask(t, c, s, "{}")
	require.NoError(t, err)
	_, err = ask(t, c, s, "{}")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.False(t, isBad(err))
	conns, requests := s.counts()
	require.Equal(t, 1, conns)
	require.Equal(t, 2, requests)
}

func isBad(err error) bool {
	_, bad := errors.AsType[*BadAnswer](err)
	return bad
}

// deaf takes no byte, as a connection that was reset a moment ago.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAKeptConnectionThatTakesNothingIsReplaced(t *testing.T) {
	s, c := serve(t, answering(good)), newClient(t, nil)
	_, err := ask(t, c, s, "{}")
	require.NoError(t, err)
	for _, kept := range c.pool.idle {
		kept[0].Conn = deaf{kept[0].tcp}
	}
	said, err := ask(t, c, s, "{}")
	require.NoError(t, err)
	require.Equal(t, "{}", said)
	conns, requests := s.counts()
	require.Equal(t, 2, conns)
	require.Equal(t, 2, requests)
}

func TestBadAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		bad    bool
	}{
		"none":              {"", false},
		"no HTTP":           {"SSH-2.0-x\r\n\r\n", true},
		"half a head":       {"HTTP/1.1 200 OK\r\nX: ", true},
		"head too long":     {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: y\r\n", 1000) + "\r\n", true},
		"too many 1xx":      {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) + good, true},
		"two lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", true},
		"unknown transfers": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}", true},
	} {
		s := serve(t, func(s *server, _ int, c net.Conn) {
			s.request(bufio.NewReader(c))
			_, _ = io.WriteString(c, tc.answer)
		})
		_, err := ask(t, newClient(t, nil), s, "{}")
		require.Error(t, err, name)
		require.Equal(t, tc.bad, isBad(err), name)
	}
}

func TestBodiesThatBreakOff(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"} {
		s := serve(t, func(s *server, _ int, c net.Conn) {
			s.request(bufio.NewReader(c))
			_, _ = io.WriteString(c, answer)
		})
		said, err := ask(t, newClient(t, nil), s, "{}")
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "{}", said)
	}
}

func TestTheContextCutsACall(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		body   int
	}{
		"before the answer": {"", 2},
		"within the head":   {"HTTP/1.1 200 OK\r\n", 2},
		"within the body":   {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", 2},
		"while it is sent":  {"", 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			s := serve(t, func(s *server, _ int, c net.Conn) {
				if tc.body > atOnce {
					<-ctx.Done()
					return
				}
				r := bufio.NewReader(c)
				s.request(r)
				_, _ = io.WriteString(c, tc.answer)
				_, _ = io.Copy(io.Discard, r) // until the client goes
			})
			c := newClient(t, nil)
			resp, err := c.Post(ctx, endpoint(t, s.url, nil), bytes.Repeat([]byte("x"), tc.body))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
			}
			require.Error(t, err)
			require.Error(t, ctx.Err())
			require.Empty(t, c.pool.idle)
		})
	}
}

func TestNothingIsSentOnceTheContextHasEnded(t *testing.T) {
	s, c := serve(t, answering(good)), newClient(t, nil)
	_, err := ask(t, c, s, "{}")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, err := c.Post(ctx, endpoint(t, s.url, nil), []byte("{}"))
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err = ask(t, c, s, "{}")
	require.NoError(t, err)
	conns, requests := s.counts()
	require.Equal(t, 1, conns, "and no connection is lost by it")
	require.Equal(t, 2, requests)
}

func TestConnectingIsBounded(t *testing.T) {
	mute := serve(t, func(_ *server, _ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c := newClient(t, func(cfg *Config) { cfg.ConnectTimeout = 30 * time.Millisecond })
	to := endpoint(t, strings.Replace(mute.url, "http:", "https:", 1), nil)
	_, err := c.Post(t.Context(), to, []byte("{}"))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Post(ctx, to, []byte("{}"))
	require.ErrorIs(t, err, context.Canceled)
}

// TestAnEarlyAnswer comes before the request is read, and is worth as much as any.
func TestAnEarlyAnswer(t *testing.T) {
	before := runtime.NumGoroutine()
	s := serve(t, func(_ *server, _ int, c net.Conn) {
		_, _ = c.Read(make([]byte, 16))
		_, _ = io.WriteString(c, strings.Replace(good, "200 OK", "413 Too Large", 1))
		_, _ = c.Read(make([]byte, 16))
	})
	c := newClient(t, nil)
	for range 2 {
		said, err := ask(t, c, s, strings.Repeat("x", 8<<20))
		require.NoError(t, err)
		require.Equal(t, "{}", said)
	}
	conns, _ := s.counts()
	require.Equal(t, 2, conns, "half a request must not be followed by another")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 5*time.Second, time.Millisecond)
}

// TestARequestIsFreeOnceItsAnswerIsClosed writes over a body that a peer has yet to
// read when it answers.
func TestARequestIsFreeOnceItsAnswerIsClosed(t *testing.T) {
	overwritten, seen := make(chan struct{}), make(chan []byte, 1)
	s := serve(t, func(_ *server, _ int, c net.Conn) {
		_, _ = io.WriteString(c, good)
		<-overwritten
		all, _ := io.ReadAll(c)
		seen <- all
	})
	c := newClient(t, nil)
	body := bytes.Repeat([]byte("x"), 16<<20)
	resp, err := c.Post(t.Context(), endpoint(t, s.url, nil), body)
	require.NoError(t, err)
	var closers sync.WaitGroup
	for range 2 { // and whoever closes second may rely on it, too
		closers.Go(func() { _ = resp.Body.Close() })
	}
	closers.Wait()
	for i := range body {
		body[i] = 'y'
	}
	close(overwritten)
	require.NotContains(t, string(<-seen), "y")
}

func TestCloseCutsAReadOfAnother(t *testing.T) {
	s := serve(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"))
	c := newClient(t, nil)
	resp, err := c.Post(t.Context(), endpoint(t, s.url, nil), []byte("{}"))
	require.NoError(t, err)
	timer := time.AfterFunc(10*time.Millisecond, func() { _ = resp.Body.Close() })
	defer timer.Stop()
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
	require.Empty(t, c.pool.idle)
}

func TestIdleConnectionsAreBoundedInTimeAndNumber(t *testing.T) {
	gone := make(chan struct{}, 8)
	s := serve(t, func(s *server, n int, c net.Conn) {
		answering(good)(s, n, c)
		gone <- struct{}{}
	})
	c := newClient(t, func(cfg *Config) { cfg.MaxIdle, cfg.IdleTimeout = 2, 100*time.Millisecond })
	var bodies []io.ReadCloser
	for range 3 {
		resp, err := c.Post(t.Context(), endpoint(t, s.url, nil), []byte("{}"))
		require.NoError(t, err)
		bodies = append(bodies, resp.Body)
	}
	for _, b := range bodies {
		_, err := io.ReadAll(b)
		require.NoError(t, err)
	}
	for range 3 { // one at once, two in time
		<-gone
	}
	require.Eventually(t, func() bool {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		return len(c.pool.idle) == 0
	}, 5*time.Second, time.Millisecond)

	_, err := ask(t, c, s, "{}")
	require.NoError(t, err)
	c.Close()
	<-gone
	_, err = ask(t, c, s, "{}")
	require.NoError(t, err, "a call under way outlives its settings")
	<-gone
}
