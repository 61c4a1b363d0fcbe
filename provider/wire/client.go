package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Config of a Client. The zero value works.
type Config struct {
	Header         http.Header      // sent with every call; CheckHeader has passed it
	ConnectTimeout time.Duration    // to connect, and again for the TLS handshake; 0 is 5 s
	MaxIdleConns   int              // connections kept for later calls, at least the calls in flight; 0 is 256
	MaxBody        int64            // bytes of a plain answer, after decompression; 0 is 32 MiB
	MaxStream      int64            // bytes of a streamed answer; 0 is 32 MiB
	MaxLine        int              // bytes of one line or event of a stream; 0 is 16 MiB
	TLS            *tls.Config      // nil is the system's
	Now            func() time.Time // for Retry-After dates; nil is time.Now

	// Transport makes the calls in place of one of the Client's own; the settings
	// of connections then do not apply.
	Transport http.RoundTripper
}

const (
	maxHeaderBytes = 64 << 10
	maxErrorBody   = 256 << 10        // bytes of an error answer that are looked at
	idleTimeout    = 30 * time.Second // below what load balancers allow, so that few kept connections are stale
)

// Accepted answers, for Call.
const (
	AcceptJSON   = "application/json"
	AcceptSSE    = "text/event-stream"
	AcceptNDJSON = "application/x-ndjson"
)

// Client makes calls to one provider. It may be used by many goroutines at once.
type Client struct {
	cfg     Config
	headers map[string]http.Header // by what is accepted; net/http only reads them
	urls    sync.Map               // string to *url.URL: one, or one for each model
	buffers sync.Pool              // of *bytes.Buffer, for whole answers
}

// New makes a Client with connections of its own.
func New(cfg Config) *Client {
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, 5*time.Second)
	cfg.MaxIdleConns = cmp.Or(cfg.MaxIdleConns, 256)
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 32<<20)
	cfg.MaxStream = cmp.Or(cfg.MaxStream, 32<<20)
	cfg.MaxLine = cmp.Or(cfg.MaxLine, 16<<20)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg)
	}
	c := &Client{cfg: cfg, headers: map[string]http.Header{}, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	for _, accept := range []string{AcceptJSON, AcceptSSE, AcceptNDJSON} {
		c.headers[accept] = header(cfg.Header, accept)
	}
	return c
}

// header is what every call carries that accepts this form.
func header(settings http.Header, accept string) http.Header {
	h := maps.Clone(settings)
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", accept)
	h.Set("User-Agent", "llmbus")
	if accept != AcceptJSON {
		h.Set("Accept-Encoding", "identity") // a compressor would hold tokens back
	}
	return h
}

// newTransport ignores proxy variables: a key must not travel where no setting
// of the provider says.
func newTransport(cfg Config) *http.Transport {
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        cfg.TLS,
		TLSHandshakeTimeout:    cfg.ConnectTimeout,
		ForceAttemptHTTP2:      true, // where TLS negotiates it
		DisableCompression:     true, // answers are small, and their text in time is worth more
		MaxIdleConns:           cfg.MaxIdleConns,
		MaxIdleConnsPerHost:    cfg.MaxIdleConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Close drops the connections that no call uses.
func (c *Client) Close() {
	if t, ok := c.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// MaxLine is the longest line or event that a stream may have, in bytes.
func (c *Client) MaxLine() int { return c.cfg.MaxLine }

// Call is one POST with a JSON body.
type Call struct {
	URL    string
	Body   []byte
	Accept string // AcceptJSON when empty; a stream is asked for by any other
}

// Post makes the call once and returns the answer, whatever its status. The
// error is a *provider.Failure. The caller closes the Response.
func (c *Client) Post(ctx context.Context, call Call) (*Response, error) {
	var answered atomic.Bool
	req, err := c.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { answered.Store(true) },
	}), call)
	if err != nil {
		return nil, provider.Fail(llm.OutcomeInvalidRequest, err)
	}
	// No http.Client: it would follow redirects and keep cookies, which no call
	// may, and copy headers and URL for them.
	resp, err := c.cfg.Transport.RoundTrip(req)
	if err != nil {
		return nil, unanswered(ctx, err, answered.Load())
	}
	limit := c.cfg.MaxBody
	if call.stream() {
		limit = c.cfg.MaxStream
	}
	return newResponse(ctx, c, call.Body, resp, limit), nil
}

// PostOK makes the call as Post does, and fails with any answer but a 2xx.
func (c *Client) PostOK(ctx context.Context, call Call) (*Response, error) {
	resp, err := c.Post(ctx, call)
	if err != nil {
		return nil, err
	}
	if !resp.OK() {
		defer resp.Close()
		return nil, resp.Failure()
	}
	return resp, nil
}

func (call *Call) stream() bool { return call.Accept != "" && call.Accept != AcceptJSON }

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	u, err := c.parse(call.URL)
	if err != nil {
		return nil, errBadRequest
	}
	// The body is hidden behind io.Reader: net/http would make GetBody for a
	// bytes.Reader, and then could send the request again by itself.
	req := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.headers[cmp.Or(call.Accept, AcceptJSON)],
		Body:   io.NopCloser(bytes.NewReader(call.Body)), ContentLength: int64(len(call.Body)),
	}
	return req.WithContext(ctx), nil
}

// parse parses each URL once.
func (c *Client) parse(raw string) (*url.URL, error) {
	if known, ok := c.urls.Load(raw); ok {
		return known.(*url.URL), nil
	}
	u, err := url.Parse(raw)
	if err == nil {
		c.urls.Store(raw, u)
	}
	return u, err
}

// unanswered is the failure of a call without an answer.
func unanswered(ctx context.Context, err error, answered bool) *provider.Failure {
	if ctx.Err() != nil {
		return provider.FromContext(ctx)
	}
	if answered {
		return provider.Fail(llm.OutcomeUnavailable, describe(err))
	}
	return provider.Fail(llm.OutcomeConnect, describe(err))
}
