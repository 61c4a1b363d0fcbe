package client

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// Resume yields the frames of a resumable request from number from on, first
// those that were sent and then those that come. It may be called on any
// connection, by several readers, and survives a lost connection. Breaking out
// of the loop leaves the request alone; see Cancel.
//
// from is 1 for a reader that has nothing of the answer, and otherwise one more
// than the Seq it has last seen. Then the Response of the end frame lacks the
// text of all frames, as it does on the wire. An id that is unknown, expired or
// of another stream is llm.ErrUnknownRequest.
func (c *Client) Resume(ctx context.Context, id string, from uint64) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		ctx, cancel := c.bound(ctx)
		defer cancel()
		if !subjects.ValidRequestID(id) || from == 0 {
			yield(llm.Frame{}, llm.Errorf(llm.CodeInvalidRequest, "id must be a request id, and from 1 or more"))
			return
		}
		s, err := c.listen(id, true, yield)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		defer s.close()
		s.last.Seq, s.committed, s.partial = from-1, from > 1, from > 1
		err = c.retry(ctx, func() error { return s.watch(ctx) })
		if err != nil && !s.left {
			yield(llm.Frame{}, err)
		}
	}
}

// watch reads on what somebody else has asked for. Silence before any text is
// worth another look: whoever asked may have gone to the next worker.
func (s *session) watch(ctx context.Context) error {
	switch err := s.comeBack(ctx, errReconnected); {
	case err == nil, errors.Is(err, errLeft):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return broken(err, s.committed)
	}
}

// Cancel stops a request by its id, on whatever connection it was made.
func (c *Client) Cancel(id string) error {
	if !subjects.ValidRequestID(id) {
		return llm.Errorf(llm.CodeInvalidRequest, "id must be a request id")
	}
	return c.nc.Publish(subjects.CancelOf(id, c.tenant), nil)
}

// unserved is what keeps the frames of a request from a reader that came back.
// The request itself may be well.
type unserved struct{ reason *llm.Error }

// Error is the reason's.
func (u *unserved) Error() string { return u.reason.Error() }

func (u *unserved) Unwrap() error { return u.reason }

// incomplete reports whether frames are missing that the whole answer may hold.
func incomplete(err error) bool {
	if _, lost := errors.AsType[*stream.GapError](err); lost {
		return true
	}
	_, refused := errors.AsType[*unserved](err)
	return refused || errors.Is(err, errReconnected)
}

// resumes bounds how often a reader asks without getting anything new.
const resumes = 8

// comeBack asks for the frames that err kept from us, as often as it takes. What
// it returns is final for the request, or incomplete.
func (s *session) comeBack(ctx context.Context, err error) error {
	for idle := 0; s.cut(err) && idle < resumes; idle++ {
		if wait := backoff(idle, err); idle > 0 {
			if !fits(ctx, wait) {
				return err
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
		}
		if err := s.online(ctx); err != nil {
			return err
		}
		before := s.last.Seq
		if err = s.resume(ctx); s.last.Seq > before {
			idle = 0
		}
	}
	return err
}

// cut reports whether the frames that err kept from us may be had elsewhere.
func (s *session) cut(err error) bool {
	switch {
	case errors.Is(err, llm.ErrUnknownRequest): // not kept: now or never
		return false
	case errors.Is(err, stream.ErrSilent):
		return !s.nc.IsConnected() // otherwise it is the worker that is silent
	case errors.Is(err, stream.ErrTruncated):
		return !s.nc.IsClosed() // the worker that served us was stopped
	}
	return incomplete(err)
}

// resume asks for the frames that are due and passes them on.
func (s *session) resume(ctx context.Context) error {
	for len(s.status) > 0 { // we know
		<-s.status
	}
	inbox, err := s.subscribe(s.nc.NewInbox(), s.frames)
	if err != nil {
		return err
	}
	defer func() { _ = inbox.Unsubscribe() }() // fails only with the connection
	s.source = inbox.Subject
	from := uint64(1) // what came before the first text may not be of the worker that serves now
	if s.committed {
		from = s.last.Seq + 1
	}
	msg := &nats.Msg{Subject: subjects.ResumeOf(s.id, s.tenant), Reply: inbox.Subject,
		Header: nats.Header{subjects.HeaderFromSeq: {strconv.FormatUint(from, 10)}}}
	if err := s.nc.PublishMsg(msg); err != nil {
		return s.translate(err, msg)
	}
	return s.read(ctx, from)
}
