package http1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server gives every connection to serve, which sees them numbered from 1.
type server struct {
	url   string
	mu    sync.Mutex
	conns int
	asked []*http.Request
}

func serve(t testing.TB, handle func(s *server, number int, c net.Conn)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{url: "http://" + l.Addr().String() + "/v1"}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			number := s.conns
			s.mu.Unlock()
			open.Go(func() {
				defer c.Close()
				handle(s, number, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return s
}

// request reads one request with its body.
func (s *server) request(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	if _, err = io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req)
	return true
}

func (s *server) counts() (conns, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns, len(s.asked)
}

// answering sends each request of a connection the same bytes, and keeps the
// connection open.
func answering(answer string) func(*server, int, net.Conn) {
	return func(s *server, _ int, c net.Conn) {
		for r := bufio.NewReader(c); s.request(r); {
			_, _ = io.WriteString(c, answer)
		}
	}
}

const good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

func newClient(t testing.TB, change func(*Config)) *Client {
	cfg := Config{ConnectTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxIdle: 4, MaxHead: 4 << 10}
	if change != nil {
		change(&cfg)
	}
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

func endpoint(t testing.TB, raw string, headers http.Header) *Endpoint {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	to, err := NewEndpoint(u, headers)
	require.NoError(t, err)
	return to
}

// ask makes a call and reads its answer whole.
func ask(t testing.TB, c *Client, s *server, body string) (string, error) {
	t.Helper()
	resp, err := c.Post(t.Context(), endpoint(t, s.url, nil), []byte(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	return string(said), err
}
