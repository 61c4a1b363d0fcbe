package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Response is an answer whose body is still to be read. It is for one goroutine.
type Response struct {
	Status int
	Header http.Header

	client *Client
	sent   []byte          // the body of the request
	ctx    context.Context // ends with the call; only to tell why a read failed
	raw    io.ReadCloser
	body   *bufio.Reader
	length int64         // that the body is said to have; -1 is unknown
	whole  *bytes.Buffer // what ReadAll has read
	done   bool
	ending *time.Timer // from EndWithin on
}

const (
	readBuffer = 4 << 10 // bytes; a stream's frames are smaller
	peekBuffer = 16      // bytes, the least that bufio has: larger reads pass it by
)

func newResponse(ctx context.Context, c *Client, sent []byte, resp *http.Response, limit int64) *Response {
	body := &bounded{r: plain(resp.Body), left: limit}
	return &Response{
		Status: resp.StatusCode, Header: resp.Header,
		client: c, sent: sent, ctx: ctx, raw: resp.Body, body: bufio.NewReaderSize(body, peekBuffer), length: resp.ContentLength,
	}
}

// OK reports whether the status is 2xx.
func (r *Response) OK() bool { return r.Status >= 200 && r.Status < 300 }

// RequestID is what the provider calls this request, or "".
func (r *Response) RequestID() string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id"} {
		if id := r.Header.Get(name); id != "" {
			return r.CleanID(id)
		}
	}
	return ""
}

// First returns the first byte of the body that is no white space and no byte
// order mark, and leaves it to be read. It is 0 when the body is blank.
func (r *Response) First() (byte, error) {
	if bom, err := r.body.Peek(1); err == nil && bom[0] == 0xEF {
		if bom, err = r.body.Peek(3); err == nil && string(bom) == "\uFEFF" {
			_, _ = r.body.Discard(3)
		}
	}
	for {
		next, err := r.body.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, r.Broken(err)
		case next == ' ' || next == '\t' || next == '\r' || next == '\n':
			continue
		}
		return next, r.body.UnreadByte()
	}
}

// Body is the decompressed and bounded body. An error of a read of it goes
// through Broken.
func (r *Response) Body() io.Reader { return r.body }

// ReadAll reads the whole body, which is valid until Close. The error is a
// *provider.Failure.
func (r *Response) ReadAll() ([]byte, error) {
	if r.whole == nil {
		r.whole = r.client.buffers.Get().(*bytes.Buffer)
	}
	r.whole.Reset()
	r.whole.Grow(int(min(max(r.length, 0), maxKept)) + bytes.MinRead)
	if _, err := r.whole.ReadFrom(r.body); err != nil {
		return nil, r.Broken(err)
	}
	r.Done()
	return r.whole.Bytes(), nil
}

// maxKept bounds the memory that is set aside on a provider's word, and that one
// answer may leave to the next.
const maxKept = 64 << 10

// SSE reads the body as server-sent events.
func (r *Response) SSE() *SSE { return NewSSE(r.body, r.client.cfg.MaxLine) }

// NDJSON reads the body as one JSON value a line.
func (r *Response) NDJSON() *NDJSON { return NewNDJSON(r.body, r.client.cfg.MaxLine) }

// Array reads the body as one JSON array that arrives in pieces.
func (r *Response) Array() *Array { return NewArray(r.body, r.client.cfg.MaxLine) }

// Broken is the failure of an answer that began and cannot be used: its body
// broke off, is too long, or is not what it should be. err is an error of a
// read, or ErrBroken.
func (r *Response) Broken(err error) *provider.Failure {
	if r.ctx.Err() != nil {
		return provider.FromContext(r.ctx)
	}
	f := provider.Fail(llm.OutcomeUnavailable, describe(err))
	f.Status, f.RequestID = r.Status, r.RequestID()
	return f
}

// Failure reads an error answer and classifies it.
func (r *Response) Failure() *provider.Failure {
	body, err := io.ReadAll(io.LimitReader(r.body, maxErrorBody))
	if err != nil && r.ctx.Err() != nil {
		return provider.FromContext(r.ctx)
	}
	problem, _ := ReadProblem(body)
	return r.Classify(problem)
}

// Classify turns an error that came within this answer into a Failure: a JSON
// error under status 200, or an event of a stream.
func (r *Response) Classify(p Problem) *provider.Failure {
	p.Status = r.Status
	p.ShouldRetry = shouldRetry(r.Header)
	if wait, ok := RetryAfter(r.Header, r.client.cfg.Now()); ok {
		p.RetryAfter = &wait
	}
	f := Classify(p)
	f.RequestID = cmp.Or(r.RequestID(), r.CleanID(p.RequestID))
	return f
}

// Done says that the answer was read to its logical end, so that Close may keep
// the connection.
func (r *Response) Done() { r.done = true }

// EndWithin bounds what is still to be read of an answer whose end was seen: a
// read that takes longer fails, and the answer is good all the same.
func (r *Response) EndWithin(d time.Duration) { r.ending = time.AfterFunc(d, r.cut) }

// cut ends a read that waits, by closing the connection.
func (r *Response) cut() { _ = r.raw.Close() }

const (
	drainFor   = 50 * time.Millisecond
	drainBytes = 64 << 10
)

// Close frees the connection: for the next call after Done, otherwise by cutting
// it. It may wait drainFor for the end of a body that is Done.
func (r *Response) Close() {
	if r.ending != nil {
		r.ending.Stop()
	}
	if r.done && r.whole == nil {
		timer := time.AfterFunc(drainFor, r.cut)
		_, _ = io.CopyN(io.Discard, r.raw, drainBytes)
		timer.Stop()
	}
	_ = r.raw.Close()
	if r.whole != nil && r.whole.Cap() <= 2*maxKept {
		r.client.buffers.Put(r.whole)
		r.whole = nil
	}
}
