package client

import (
	"context"
	"errors"
	"iter"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// Stream publishes the request and yields the answer as it comes. Breaking out
// of the loop cancels the request. With req.Resumable the stream survives a
// lost connection: it goes on where it was.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		ctx, cancel := c.bound(ctx)
		defer cancel()
		call, err := c.newCall(req, true)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		s, err := c.listen(call.id, call.resumable, yield)
		if err != nil {
			yield(llm.Frame{}, err)
			return
		}
		defer s.close()
		call.askForPings(c.silence)
		err = c.retry(ctx, func() error { return s.once(ctx, call) })
		if err != nil && !s.left {
			yield(llm.Frame{}, err)
		}
	}
}

// buffered is how many messages a slow reader may be behind before the client
// drops some, which is then a gap.
const buffered = 1024

var (
	errReplied     = errors.New("the reply came")
	errLeft        = errors.New("the reader left")
	errReconnected = errors.New("the connection was made anew")
)

// session is one streamed request, or one that is resumed.
type session struct {
	*Client
	id        string
	resumable bool
	yield     func(llm.Frame, error) bool
	left      bool // the reader broke out of its loop

	frames  chan *nats.Msg // of every subject that frames may come on
	source  string         // the one they are read from now; others are passed over
	live    *nats.Subscription
	replies chan *nats.Msg // apart, so that a slow reader cannot make us drop the reply
	inbox   *nats.Subscription
	status  chan nats.Status // tells when there is a connection again; nil unless resumable
	closed  chan struct{}    // the connection is closed

	reply     *nats.Msg // taken from replies, not yet used
	last      llm.Frame // the last one read
	partial   bool      // frames are wanted from a later one on
	committed bool      // a part of the answer was shown
	attempt   int       // the highest shown
	earlier   int       // what attempts of this worker come after: it may not be the first
	whole     stream.Assembly
}

func (c *Client) listen(id string, resumable bool, yield func(llm.Frame, error) bool) (*session, error) {
	s := &session{Client: c, id: id, resumable: resumable, yield: yield, closed: make(chan struct{}), frames: make(chan *nats.Msg, buffered)}
	if resumable {
		s.status = c.nc.StatusChanged(nats.CONNECTED)
	}
	var err error
	s.source = subjects.Stream(c.tenant, id)
	if s.live, err = s.subscribe(s.source, s.frames); err != nil {
		s.close()
		return nil, err
	}
	s.live.SetClosedHandler(func(string) { close(s.closed) })
	return s, nil
}

func (s *session) subscribe(subject string, messages chan *nats.Msg) (*nats.Subscription, error) {
	sub, err := s.nc.ChanSubscribe(subject, messages)
	if err != nil {
		return nil, llm.Errorf(llm.CodeUnavailable, "listening over NATS: %w", err)
	}
	return sub, nil
}

func (s *session) close() {
	for _, sub := range []*nats.Subscription{s.live, s.inbox} {
		if sub != nil {
			_ = sub.Unsubscribe() // fails only with the connection
		}
	}
	if s.status != nil {
		s.nc.RemoveStatusListener(s.status)
	}
}

// begin makes ready for what one worker says. It has an inbox of its own, so
// that a lost worker that comes back answers nobody.
func (s *session) begin() error {
	if s.inbox != nil {
		_ = s.inbox.Unsubscribe() // fails only with the connection
	}
	s.last, s.reply, s.replies = llm.Frame{}, nil, make(chan *nats.Msg, 1)
	var err error
	s.inbox, err = s.subscribe(s.nc.NewInbox(), s.replies)
	return err
}

// once sends the request and passes its answer on. An error for which refused
// or vanished holds came before anything was shown.
func (s *session) once(ctx context.Context, call *call) error {
	if err := s.begin(); err != nil {
		return err
	}
	msg, err := call.message(ctx)
	if err != nil {
		return err
	}
	msg.Reply = s.inbox.Subject
	if err := s.nc.PublishMsg(msg); err != nil {
		return s.translate(err, msg)
	}
	err = s.read(ctx, 1)
	if s.resumable {
		err = s.comeBack(ctx, err)
	}
	if incomplete(err) {
		s.source = s.live.Subject
		err = s.awaitReply(ctx, err)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errReplied):
		return s.repair()
	case errors.Is(err, errLeft):
		s.cancel(s.id)
		return err
	case ctx.Err() != nil:
		s.cancel(s.id)
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders):
		return s.translate(err, msg)
	case errors.Is(err, stream.ErrSilent):
		s.cancel(s.id) // in case it lives and only the way from it is cut
	}
	return broken(err, s.committed)
}

// read passes frames from number want on, up to the end.
func (s *session) read(ctx context.Context, want uint64) error {
	for f, err := range stream.ReadFrom(ctx, s.next, want, s.silence) {
		if err != nil {
			if e, ok := errors.AsType[*llm.Error](err); ok && f.Type != llm.FrameError && s.source != s.live.Subject {
				return &unserved{e}
			}
			return err
		}
		if f.Seq == 1 { // the first worker, or another one after it
			s.earlier, s.whole = s.attempt, stream.Assembly{}
		}
		f.Attempt += s.earlier
		s.last = f
		s.whole.Add(&f)
		if f.Type == llm.FrameEnd && !s.partial {
			s.whole.Complete(f.Response)
		}
		if f.Type == llm.FramePing {
			continue
		}
		s.attempt = f.Attempt
		s.committed = s.committed || f.Type == llm.FrameDelta || f.Type == llm.FrameToolCall
		if !s.show(f) {
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
			if msg.Subject == s.source {
				return s.taken(msg)
			}
			continue
		default:
		}
		if s.reply != nil {
			return nil, s.replied()
		}
		select {
		case msg := <-s.frames:
			if msg.Subject == s.source {
				return s.taken(msg)
			}
		case s.reply = <-s.replies:
		case <-s.status:
			return nil, errReconnected
		case <-s.closed:
			return nil, nats.ErrConnectionClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// taken tells a frame from the server's report that nobody serves readers.
func (s *session) taken(msg *nats.Msg) (*nats.Msg, error) {
	if reportsNobody(msg) {
		return nil, &unserved{llm.Errorf(llm.CodeUnavailable, "no worker serves readers: %w", nats.ErrNoResponders)}
	}
	return msg, nil
}

// replied tells a reply from the server's report that nobody took the request.
func (s *session) replied() error {
	if reportsNobody(s.reply) {
		s.reply = nil
		return nats.ErrNoResponders
	}
	return errReplied
}

func reportsNobody(msg *nats.Msg) bool {
	return len(msg.Data) == 0 && msg.Header.Get(subjects.HeaderStatus) == subjects.StatusNoResponders
}
