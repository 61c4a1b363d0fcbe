package http1

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzAnswer has a peer send any bytes and hang up, and holds what comes of them
// to what net/http's own transport makes of the same.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		good, "", "HTTP/1.1 200 OK\r\n\r\nto the end", "HTTP/1.0 503 x\r\nRetry-After: 1\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n" + good, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + good,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200\r\nContent-Length: 03\r\n\r\n{}",
	} {
		f.Add(answer)
	}
	var answer string
	s := serve(f, func(s *server, _ int, c net.Conn) {
		if s.request(bufio.NewReader(c)) {
			_, _ = io.WriteString(c, answer)
		}
	})
	theirs := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20}
	ours := newClient(f, func(cfg *Config) { cfg.MaxHead, cfg.MaxIdle = 1<<20, 0 }) // the peer hangs up without a word
	to := endpoint(f, s.url, nil)
	f.Fuzz(func(t *testing.T, sent string) {
		if len(sent) > 32<<10 || strings.Contains(sent, " 101") { // which switches protocols in net/http
			return
		}
		answer = sent
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader("{}"))
		require.NoError(t, err)
		req.GetBody = nil
		want := told(theirs.RoundTrip(req))
		require.Equal(t, want, told(ours.Post(ctx, to, []byte("{}"))))
	})
}

// told is what a caller learns of an answer.
func told(resp *http.Response, err error) (t struct {
	Status int
	Header http.Header
	Body   string
	Whole  bool
}) {
	if err != nil {
		return t
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	t.Status, t.Header, t.Body, t.Whole = resp.StatusCode, resp.Header, string(body), err == nil
	return t
}
