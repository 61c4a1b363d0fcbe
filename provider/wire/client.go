package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire/http1"
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
	Transport Transport
}

// Transport makes one call, once, and gives the answer whatever its status. See
// http1.Client, which is the one that is used.
type Transport interface {
	Post(ctx context.Context, to *http1.Endpoint, body []byte) (*http.Response, error)
	Close() // drops the connections that no call uses
}

var _ Transport = (*http1.Client)(nil)

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
	cfg       Config
	endpoints sync.Map  // of place to *http1.Endpoint: few, or some for each model
	buffers   sync.Pool // of *bytes.Buffer, for whole answers
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
		cfg.Transport = http1.New(http1.Config{
			ConnectTimeout: cfg.ConnectTimeout, IdleTimeout: idleTimeout, MaxIdle: cfg.MaxIdleConns, MaxHead: maxHeaderBytes, TLS: cfg.TLS,
		})
	}
	return &Client{cfg: cfg, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
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

// Close drops the connections that no call uses.
func (c *Client) Close() { c.cfg.Transport.Close() }

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
	to, err := c.endpoint(place{call.URL, cmp.Or(call.Accept, AcceptJSON)})
	if err != nil {
		return nil, provider.Fail(llm.OutcomeInvalidRequest, err)
	}
	resp, err := c.cfg.Transport.Post(ctx, to, call.Body)
	if err != nil {
		return nil, unanswered(ctx, err)
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

// place is a URL and what is accepted from it.
type place struct{ url, accept string }

// endpoint prepares each place once.
func (c *Client) endpoint(p place) (*http1.Endpoint, error) {
	if known, ok := c.endpoints.Load(p); ok {
		return known.(*http1.Endpoint), nil
	}
	u, err := url.Parse(p.url)
	if err != nil {
		return nil, errBadRequest
	}
	to, err := http1.NewEndpoint(u, header(c.cfg.Header, p.accept))
	if err != nil {
		return nil, errBadRequest
	}
	c.endpoints.Store(p, to)
	return to, nil
}

// unanswered is the failure of a call without an answer.
func unanswered(ctx context.Context, err error) *provider.Failure {
	if ctx.Err() != nil {
		return provider.FromContext(ctx)
	}
	if _, begun := errors.AsType[*http1.BadAnswer](err); begun {
		return provider.Fail(llm.OutcomeUnavailable, describe(err))
	}
	return provider.Fail(llm.OutcomeConnect, describe(err))
}
