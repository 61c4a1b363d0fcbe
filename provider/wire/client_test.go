package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

func dial(t testing.TB, cfg Config) *Client {
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

func TestPostSendsOneJSONBody(t *testing.T) {
	server := vectors.Serve(t, &vectors.Upstream{Status: 200, Headers: map[string]string{"X-Request-Id": "r-1"}, Body: " \r\n{}"})
	c := dial(t, Config{Header: http.Header{"Authorization": {"Bearer k"}}})

	resp, err := c.Post(t.Context(), Call{URL: server.URL + "/v1/x?api-version=1", Body: []byte(`{"a":1}`)})
	require.NoError(t, err)
	defer resp.Close()
	require.True(t, resp.OK())
	require.Equal(t, "r-1", resp.RequestID())
	first, err := resp.First()
	require.NoError(t, err)
	require.Equal(t, byte('{'), first)
	body, err := resp.ReadAll()
	require.NoError(t, err)
	require.Equal(t, "{}", string(body))

	sent := server.Requests()[0]
	require.Equal(t, http.MethodPost, sent.Method)
	require.Equal(t, "/v1/x", sent.Path)
	require.Equal(t, `{"a":1}`, string(sent.Body))
	require.Equal(t, "7", sent.Header.Get("Content-Length"))
	require.Equal(t, "application/json", sent.Header.Get("Content-Type"))
	require.Equal(t, "application/json", sent.Header.Get("Accept"))
	require.Equal(t, "Bearer k", sent.Header.Get("Authorization"))
}

func TestStreamsAskForNoCompression(t *testing.T) {
	server := vectors.Serve(t, &vectors.Upstream{Status: 200, Body: "data: a\n\n"})
	resp, err := dial(t, Config{}).Post(t.Context(), Call{URL: server.URL, Accept: AcceptSSE})
	require.NoError(t, err)
	defer resp.Close()
	e, err := resp.SSE().Next()
	require.NoError(t, err)
	require.Equal(t, "a", string(e.Data))
	require.Equal(t, "identity", server.Requests()[0].Header.Get("Accept-Encoding"))
	require.Equal(t, AcceptSSE, server.Requests()[0].Header.Get("Accept"))
}

func TestNoAnswerIsConnect(t *testing.T) {
	for fault, text := range map[string]string{
		"refuse": "connection refused", "reset": "connection reset", "truncate": "connection closed early",
	} {
		t.Run(fault, func(t *testing.T) {
			server := vectors.Serve(t, &vectors.Upstream{Fault: fault})
			_, err := dial(t, Config{}).Post(t.Context(), Call{URL: server.URL, Body: []byte("{}")})
			f := provider.AsFailure(err)
			require.Equal(t, llm.OutcomeConnect, f.Outcome)
			require.EqualError(t, f, "connect: "+text)
		})
	}
	_, err := dial(t, Config{}).Post(t.Context(), Call{URL: "http://no-such-host.invalid"})
	require.Equal(t, llm.OutcomeConnect, provider.AsFailure(err).Outcome)

	server := vectors.Serve(t, &vectors.Upstream{Fault: "truncate"})
	_, err = dial(t, Config{}).Post(t.Context(), Call{URL: strings.Replace(server.URL, "http:", "https:", 1)})
	require.Equal(t, llm.OutcomeConnect, provider.AsFailure(err).Outcome)
}

func TestConnectingIsBounded(t *testing.T) {
	c := New(Config{ConnectTimeout: time.Nanosecond})
	_, err := c.Post(t.Context(), Call{URL: "http://127.0.0.1:9"})
	require.EqualError(t, err, "connect: connecting took too long")
}

func TestGarbageInsteadOfHeadersIsUnavailableAndNotQuoted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1024))
		_, _ = io.WriteString(conn, "canary garbage\r\n\r\n")
		_ = conn.Close()
	}()
	_, err = dial(t, Config{}).Post(t.Context(), Call{URL: "http://" + listener.Addr().String()})
	require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(err).Outcome)
	require.NotContains(t, err.Error(), "canary")
}

func TestABrokenBodyIsUnavailable(t *testing.T) {
	for fault, cause := range map[string]error{"reset": syscall.ECONNRESET, "truncate": io.ErrUnexpectedEOF} {
		server := vectors.Serve(t, &vectors.Upstream{Status: 200, Body: `{"a":`, Fault: fault})
		resp, err := dial(t, Config{}).Post(t.Context(), Call{URL: server.URL})
		require.NoError(t, err)
		_, err = resp.ReadAll()
		resp.Close()
		require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(err).Outcome)
		require.Equal(t, 200, provider.AsFailure(err).Status)
		require.ErrorIs(t, err, cause)
	}
}

func TestTheContextsCauseIsTheReason(t *testing.T) {
	for name, u := range map[string]*vectors.Upstream{
		"before headers": {Fault: "stall"}, "within the body": {Status: 200, Body: "{", Fault: "stall"}, "within an error body": {Status: 500, Body: "{", Fault: "stall"},
	} {
		t.Run(name, func(t *testing.T) {
			server := vectors.Serve(t, u)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, provider.Fail(llm.OutcomeTimeout, nil))
			defer cancel()
			resp, err := dial(t, Config{}).Post(ctx, Call{URL: server.URL})
			if err == nil && resp.OK() {
				_, err = resp.ReadAll()
			} else if err == nil {
				err = resp.Failure()
			}
			require.Equal(t, llm.OutcomeTimeout, provider.AsFailure(err).Outcome)
		})
	}
}

func TestNothingIsSentTwice(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1); r.URL.Path != "/elsewhere" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	resp, err := dial(t, Config{}).Post(t.Context(), Call{URL: server.URL, Body: []byte("{}")})
	require.NoError(t, err)
	defer resp.Close()
	require.Equal(t, llm.OutcomeUnavailable, resp.Failure().Outcome)
	require.EqualValues(t, 1, calls.Load())
}

// TestAKeyStaysWithItsHost has a provider send the call on to another host, in
// every way that HTTP knows.
func TestAKeyStaysWithItsHost(t *testing.T) {
	other := vectors.Serve(t, &vectors.Upstream{Status: 200, Body: "{}"})
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := vectors.Serve(t, &vectors.Upstream{Status: status, Headers: map[string]string{"Location": other.URL + "/take", "Refresh": "0; url=" + other.URL}})
		for _, accept := range []string{AcceptJSON, AcceptSSE} {
			resp, err := dial(t, Config{Header: http.Header{"Authorization": {"Bearer key"}, "X-Api-Key": {"key"}}}).
				Post(t.Context(), Call{URL: server.URL, Body: []byte(`{"prompt":"secret"}`), Accept: accept})
			require.NoError(t, err)
			require.Equal(t, llm.OutcomeUnavailable, resp.Failure().Outcome, status)
			resp.Close()
		}
		require.Len(t, server.Requests(), 2)
		require.Zero(t, other.Accepted(), "not even a connection")
	}
}

func TestProxyVariablesAreIgnored(t *testing.T) {
	proxy := vectors.Serve(t, &vectors.Upstream{Status: 200, Body: "{}"})
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	_, err := dial(t, Config{}).Post(t.Context(), Call{URL: "http://no-such-host.invalid"})
	require.Equal(t, llm.OutcomeConnect, provider.AsFailure(err).Outcome)
	require.Zero(t, proxy.Accepted())
}

func TestGzipIsUndoneWhoeverAskedForIt(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := io.WriteString(w, "data: {}\n\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for name, header := range map[string]map[string]string{"labelled": {"Content-Encoding": "gzip"}, "unlabelled": {}} {
		for _, accept := range []string{AcceptJSON, AcceptSSE} {
			t.Run(name+" "+accept, func(t *testing.T) {
				server := vectors.Serve(t, &vectors.Upstream{Status: 200, Headers: header, BodyB64: zipped.Bytes()})
				resp, err := dial(t, Config{}).Post(t.Context(), Call{URL: server.URL, Accept: accept})
				require.NoError(t, err)
				defer resp.Close()
				body, err := resp.ReadAll()
				require.NoError(t, err)
				require.Equal(t, "data: {}\n\n", string(body))
			})
		}
	}
}

func TestBodiesAndHeadersAreBounded(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for name, u := range map[string]*vectors.Upstream{
		"plain": {Status: 200, Body: strings.Repeat("x", 1001)}, "zipped": {Status: 200, BodyB64: zipped.Bytes()},
	} {
		t.Run(name, func(t *testing.T) {
			server := vectors.Serve(t, u)
			resp, err := dial(t, Config{MaxBody: 1000}).Post(t.Context(), Call{URL: server.URL})
			require.NoError(t, err)
			defer resp.Close()
			_, err = resp.ReadAll()
			require.ErrorIs(t, err, ErrTooLong)
			require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(err).Outcome)
		})
	}
	server := vectors.Serve(t, &vectors.Upstream{Status: 200, Body: strings.Repeat("x", 1000)})
	resp, err := dial(t, Config{MaxBody: 1000}).Post(t.Context(), Call{URL: server.URL})
	require.NoError(t, err)
	body, err := resp.ReadAll()
	resp.Close()
	require.NoError(t, err)
	require.Len(t, body, 1000, "the limit itself is allowed")

	server = vectors.Serve(t, &vectors.Upstream{Status: 200, Headers: map[string]string{"X-Long": strings.Repeat("x", 2*maxHeaderBytes)}})
	_, err = dial(t, Config{}).Post(t.Context(), Call{URL: server.URL})
	require.Equal(t, llm.OutcomeUnavailable, provider.AsFailure(err).Outcome)
}

func TestFirstSkipsBlanksAndAByteOrderMark(t *testing.T) {
	for body, want := range map[string]byte{"": 0, " \n\t": 0, "\uFEFF{": '{', "\n\n<": '<', ": ping": ':', "\xEF": 0xEF} {
		server := vectors.Serve(t, &vectors.Upstream{Status: 200, Body: body})
		resp, err := dial(t, Config{}).Post(t.Context(), Call{URL: server.URL})
		require.NoError(t, err)
		got, err := resp.First()
		resp.Close()
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", body)
	}
}

func TestFailureCarriesWhatTheHeadersSay(t *testing.T) {
	server := vectors.Serve(t, &vectors.Upstream{
		Status:  503,
		Headers: map[string]string{"Retry-After": "Wed, 23 Sep 2026 10:00:07 GMT", "Apim-Request-Id": "a-1", "X-Should-Retry": "false"},
		Body:    `{"error":{"code":"server_is_overloaded"}}`,
	})
	now := time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC)
	resp, err := dial(t, Config{Now: func() time.Time { return now }}).Post(t.Context(), Call{URL: server.URL})
	require.NoError(t, err)
	defer resp.Close()
	f := resp.Failure()
	require.Equal(t, llm.OutcomeOverloaded, f.Outcome)
	require.Equal(t, 7*time.Second, *f.RetryAfter)
	require.Equal(t, "a-1", f.RequestID)
	require.True(t, f.NoRetry)
	require.EqualError(t, f, "overloaded: status 503 server_is_overloaded")
}

func TestCloseKeepsAConnectionThatIsDoneAndCutsOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		done     bool
		fault    string
		accepted int
	}{
		"done": {true, "", 1}, "not done": {false, "stall", 2}, "done, and the peer stalls": {true, "stall", 2},
	} {
		t.Run(name, func(t *testing.T) {
			server := vectors.Serve(t, &vectors.Upstream{Status: 200, Fault: tc.fault, Chunks: []vectors.Chunk{{Data: "data: [DONE]\n\n"}}})
			c := dial(t, Config{})
			for range 2 {
				resp, err := c.Post(t.Context(), Call{URL: server.URL, Accept: AcceptSSE})
				require.NoError(t, err)
				_, err = resp.SSE().Next()
				require.NoError(t, err)
				if tc.done {
					resp.Done()
				}
				resp.Close()
			}
			require.Equal(t, tc.accepted, server.Accepted())
		})
	}
}

func TestTLSIsChecked(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one client is meant to be refused
	server.StartTLS()
	defer server.Close()
	trusting := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for _, tc := range []struct {
		tls  *tls.Config
		want string
	}{{&tls.Config{RootCAs: trusting}, "HTTP/1.1"}, {nil, ""}} {
		resp, err := dial(t, Config{TLS: tc.tls}).Post(t.Context(), Call{URL: server.URL})
		if tc.want == "" {
			require.EqualError(t, err, "connect: TLS could not be agreed on")
			continue
		}
		require.NoError(t, err)
		body, err := resp.ReadAll()
		require.NoError(t, err)
		require.Equal(t, tc.want, string(body))
		resp.Close()
	}
}

func TestDescribeKeepsTheCauseAndHidesItsText(t *testing.T) {
	cause := errors.New("canary")
	err := describe(cause)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "connection failed")
}
