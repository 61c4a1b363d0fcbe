package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// Request headers.
const (
	headerIdempotency = "Idempotency-Key"
	headerTimeoutMS   = "X-Llmbus-Timeout-Ms"
	headerClass       = "X-Llmbus-Class"
	headerDataClass   = "X-Llmbus-Data-Class"
	headerTrace       = "Traceparent"
)

// chat serves POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, tenant string) {
	c, limit, err := s.decode(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	c.req.ID = w.Header().Get(headerRequestID)
	ask, err := s.asker.of(tenant)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, llm.ErrDeadline)
	defer cancel()
	ctx, leave := s.outage.join(ctx)
	defer leave()
	if err := s.online(ctx); err != nil {
		s.refuse(w, r, err)
		return
	}
	if c.req.Stream {
		s.stream(ctx, w, r, ask, c)
		return
	}
	resp, err := ask.Complete(ctx, c.req)
	if err == nil {
		err = queued(resp)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.answer(w, c, resp)
}

// decode reads a request and how long it may take.
func (s *Server) decode(w http.ResponseWriter, r *http.Request) (*chat, time.Duration, error) {
	body, err := s.read(w, r)
	if err != nil {
		return nil, 0, err
	}
	c, err := decodeChat(body)
	if err != nil {
		return nil, 0, err
	}
	h := r.Header
	c.req.IdempotencyKey, c.req.DataClass = h.Get(headerIdempotency), h.Get(headerDataClass)
	c.req.Class, c.req.TraceParent = llm.Class(h.Get(headerClass)), h.Get(headerTrace)
	if err := c.req.Validate(); err != nil {
		return nil, 0, err
	}
	limit := s.cfg.MaxTimeout
	if text := h.Get(headerTimeoutMS); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 1 || ms > maxTimeout.Milliseconds() {
			return nil, 0, invalid("x-llmbus-timeout-ms must be a whole number from 1 to %d", maxTimeout.Milliseconds())
		}
		limit = min(limit, time.Duration(ms)*time.Millisecond)
	}
	return c, limit, nil
}

// refuse answers with an error. For a caller that is gone the connection is cut:
// to leave without a word would be an empty success.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, ours := errors.AsType[*problem](err)
	if !ours {
		if gone(r) {
			panic(http.ErrAbortHandler)
		}
		p = new(problemOf(err))
	}
	s.note(r.Context(), "request refused", w.Header().Get(headerRequestID), p)
	p.write(w)
}

// gone reports whether the caller has left.
func gone(r *http.Request) bool {
	cause := context.Cause(r.Context())
	return cause != nil && !errors.Is(cause, errStopped)
}

// queued is the error of a request that a job has taken over: its answer is not
// there, and nothing in the API says so.
func queued(resp *llm.Response) error {
	if resp.Job == nil {
		return nil
	}
	return &problem{status: http.StatusServiceUnavailable, kind: kindServer, code: "queued", job: resp.Job.ID,
		message: "no model could serve it now; the job " + resp.Job.ID + " makes the answer, on " + resp.Job.Result}
}

// answer sends the whole answer.
func (s *Server) answer(w http.ResponseWriter, c *chat, resp *llm.Response) {
	body, err := appendCompletion(nil, c.req, resp, time.Now().Unix())
	if err != nil {
		problemOf(err).write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	credit(h, resp)
	warn(h, append(c.req.Warnings, resp.Warnings...))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.WriteTimeout)) // a server's connection has deadlines
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // fails only when the caller is gone
}
