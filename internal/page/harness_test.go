package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/page"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

const (
	secret   = "0123456789abcdef"
	patience = time.Minute // on a busy machine; a test that passes does not wait for it
	tick     = 2 * time.Millisecond
)

// site is a page on a real socket, with a NATS server behind it.
type site struct {
	t    *testing.T
	url  string
	page *page.Page
	nc   *nats.Conn
	b    *kv.Buckets
	js   jetstream.JetStream
}

// open serves a page; change may adjust its configuration first.
func open(t *testing.T, change func(*page.Config)) *site {
	t.Helper()
	srv := natstest.Server(t)
	s := &site{t: t, nc: natstest.Connect(t, srv)}
	c := page.Config{Conn: natstest.Connect(t, srv), View: func() any { return map[string]string{"text": "</script>\nü"} }, Key: secret, Local: true}
	if change != nil {
		change(&c)
	}
	var err error
	s.page, err = page.New(c)
	require.NoError(t, err)
	server := httptest.NewServer(s.page)
	s.url = server.URL
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.page.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		server.CloseClientConnections() // viewers are still there
		server.Close()
	})
	return s
}

// furnish makes buckets and streams, as a worker does.
func (s *site) furnish() {
	s.t.Helper()
	var err error
	s.js, err = jetstream.New(s.nc)
	require.NoError(s.t, err)
	o := kv.Options{Storage: jetstream.MemoryStorage}
	s.b, err = kv.Open(s.t.Context(), s.js, o)
	require.NoError(s.t, err)
	_, err = jobs.Open(s.t.Context(), s.js, s.b.Jobs, jobs.StreamOptions{Options: o})
	require.NoError(s.t, err)
}

// call is one request. header is pairs of names and values.
func (s *site) call(method, path, body string, header ...string) (int, string, http.Header) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(text), resp.Header
}

// post is an action with the admin key.
func (s *site) post(path, body string) (int, string) {
	s.t.Helper()
	status, text, _ := s.call(http.MethodPost, path, body, "Authorization", "Bearer "+secret, "Origin", s.url)
	return status, text
}

// viewing is an open stream.
type viewing struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Reader
}

func (s *site) look(header ...string) *viewing {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/page/events", nil)
	require.NoError(s.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &viewing{s.t, resp, bufio.NewReader(resp.Body)}
}

// next reads one event and what it holds.
func (v *viewing) next(into any) (event string) {
	v.t.Helper()
	name, err := v.in.ReadString('\n')
	require.NoError(v.t, err)
	data, err := v.in.ReadString('\n')
	require.NoError(v.t, err)
	blank, err := v.in.ReadString('\n')
	require.NoError(v.t, err)
	require.Equal(v.t, "\n", blank)
	require.NoError(v.t, json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), into))
	return strings.TrimSuffix(strings.TrimPrefix(name, "event: "), "\n")
}

// dead puts a dead letter where workers put them.
func (s *site) dead(feature, id, letter string) {
	s.t.Helper()
	_, err := s.js.Publish(s.t.Context(), subjects.DeadLetter(feature, "", id), []byte(letter))
	require.NoError(s.t, err)
}
