package client

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// Stream publishes the request and yields the answer as it comes. Breaking out
// of the loop cancels the request.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		ctx, cancel := c.bound(ctx)
		defer cancel()
		call, err := c.newCall(req, true)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		s, err := c.listen(call, yield)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		defer s.close()
		err = retry(ctx, func() error { return s.once(ctx) })
		if err != nil && !s.left {
			yield(llm.Frame{}, err)
		}
	}
}

// buffered is how many messages a slow reader may be behind before the client
// drops some, which is then a gap.
const buffered = 1024

var (
	errReplied = errors.New("the reply came")
	errLeft    = errors.New("the reader left")
)

// session is one streamed request.
type session struct {
	*Client
	call  *call
	yield func(llm.Frame, error) bool
	left  bool // the reader broke out of its loop

	frames  chan *nats.Msg
	replies chan *nats.Msg // apart, so that a slow reader cannot make us drop the reply
	inbox   string
	subs    []*nats.Subscription
	closed  chan struct{} // the connection is closed

	reply *nats.Msg // taken from replies, not yet used
	last  llm.Frame // the last one read
	whole stream.Assembly
}

func (c *Client) listen(call *call, yield func(llm.Frame, error) bool) (*session, error) {
	s := &session{
		Client: c, call: call, yield: yield, inbox: c.nc.NewInbox(), closed: make(chan struct{}),
		frames: make(chan *nats.Msg, buffered), replies: make(chan *nats.Msg, 1),
	}
	gone := sync.OnceFunc(func() { close(s.closed) })
	for subject, messages := range map[string]chan *nats.Msg{subjects.Stream("", call.id): s.frames, s.inbox: s.replies} {
		sub, err := c.nc.ChanSubscribe(subject, messages)
		if err != nil {
			s.close()
			return nil, llm.Errorf(llm.CodeUnavailable, "listening over NATS: %w", err)
		}
		sub.SetClosedHandler(func(string) { gone() })
		s.subs = append(s.subs, sub)
	}
	return s, nil
}

func (s *session) close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // fails only with the connection
	}
}

// once sends the request and passes its answer on. An error for which refused
// holds came before anything was shown.
func (s *session) once(ctx context.Context) error {
	msg, err := s.call.message(ctx)
	if err != nil {
		return err
	}
	msg.Reply = s.inbox
	if err := s.nc.PublishMsg(msg); err != nil {
		return s.translate(err, msg)
	}
	err = s.read(ctx)
	if lost, ok := errors.AsType[*stream.GapError](err); ok {
		err = s.awaitReply(ctx, lost)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errReplied):
		return s.repair()
	case errors.Is(err, errLeft):
		s.cancel(s.call.id)
		return err
	case ctx.Err() != nil:
		s.cancel(s.call.id)
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders):
		return s.translate(err, msg)
	case errors.Is(err, stream.ErrSilent):
		s.cancel(s.call.id) // in case it lives and only the way from it is cut
	}
	return broken(err, s.whole.Text() != "")
}

// read passes frames on up to the end.
func (s *session) read(ctx context.Context) error {
	for f, err := range stream.Read(ctx, s.next, s.silence) {
		if err != nil {
			return err
		}
		s.last = f
		s.whole.Add(&f)
		if f.Type == llm.FrameEnd {
			s.whole.Complete(f.Response)
		}
		if f.Type != llm.FramePing && !s.show(f) {
			return errLeft
		}
	}
	return nil
}

// show yields one frame. A reader that leaves at the last frame has missed
// nothing.
func (s *session) show(f llm.Frame) bool {
	if !s.left {
		s.left = !s.yield(f, nil)
	}
	return !s.left || f.Terminal()
}

// next waits for the next frame. When the reply has come and no frame is left it
// says errReplied: a connection delivers in order, so the frames that were sent
// before the reply are here before it.
func (s *session) next(ctx context.Context) (*nats.Msg, error) {
	for {
		select {
		case msg := <-s.frames:
			return msg, nil
		default:
		}
		if s.reply != nil {
			return nil, s.replied()
		}
		select {
		case msg := <-s.frames:
			return msg, nil
		case s.reply = <-s.replies:
		case <-s.closed:
			return nil, nats.ErrConnectionClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// replied tells a reply from the server's report that nobody took the request.
func (s *session) replied() error {
	if len(s.reply.Data) == 0 && s.reply.Header.Get(subjects.HeaderStatus) == subjects.StatusNoResponders {
		s.reply = nil
		return nats.ErrNoResponders
	}
	return errReplied
}
