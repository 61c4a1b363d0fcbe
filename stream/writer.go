package stream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

// Target says where the frames of one answer go and how.
type Target struct {
	Subject string
	Inbox   bool // Subject is a reply inbox: one empty message follows the last frame

	// Capture is a second subject that gets every frame, without headers; empty for
	// none. It is for readers that come back.
	Capture string

	// Greet sends a ping at once, so that a reader knows that there is a worker.
	Greet bool

	// PingEvery is the longest silence; 0 sends no pings.
	PingEvery time.Duration

	// FirstReply and PingReply are the reply subjects of the first frame, whatever
	// its type, and of pings, or of another frame where frames follow each other so
	// fast that PingEvery passes without a ping. The server answers there with "no responders" when nobody listens to
	// Subject, which is how a worker notices that the caller is gone. Empty asks
	// for no such answer.
	FirstReply, PingReply string

	// Header gives the headers of the first and the last frame. It may be nil.
	Header func(f *llm.Frame) nats.Header
}

// Writer publishes the frames of one answer. It may be used by many goroutines
// at once. It never waits for a reader or for a round trip: frames go to the
// connection's buffer, whose flusher sends them at once.
type Writer struct {
	nc *nats.Conn
	to Target

	mu      sync.Mutex
	seq     uint64
	attempt int
	ended   bool
	sent    Assembly
	last    llm.Frame // and its bytes: kept here so that a frame costs no allocation
	buf     []byte
	ping    *time.Timer // nil without pings
	wrote   time.Time   // when the last message was published, or the stream began
	asked   time.Time   // when PingReply was last used, or the stream began
}

// NewWriter starts a stream, whose first ping comes after PingEvery. It must be
// ended by Write of an end or error frame, or by Stop; both stop the pings.
func NewWriter(nc *nats.Conn, to Target) *Writer {
	now := time.Now()
	w := &Writer{nc: nc, to: to, wrote: now, asked: now}
	w.mu.Lock()
	defer w.mu.Unlock()
	if to.PingEvery > 0 {
		w.ping = time.AfterFunc(to.PingEvery, w.sendPing)
	}
	if to.Greet {
		_ = w.publish(llm.Frame{Type: llm.FramePing}) // a loss shows as a gap
	}
	return w
}

// Stop ends a stream without a last frame, for one that carries pings alone.
func (w *Writer) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.ping != nil {
		w.ping.Stop()
	}
}

// Write publishes one frame and numbers it. Reasoning, pings and empty deltas
// are passed over. A delta or a tool call that is larger than the connection's
// max_payload is sent in pieces; an end frame that is larger becomes an error
// frame with code too_large. After the last frame Write returns ErrEnded. An
// error from the connection leaves a gap that the reader sees.
func (w *Writer) Write(f llm.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return ErrEnded
	}
	w.attempt = max(w.attempt, f.Attempt)
	f.Attempt = w.attempt
	switch f.Type {
	case llm.FrameEnd:
		return w.end(f)
	case llm.FrameError:
		return w.fail(f)
	case llm.FrameReasoning, llm.FramePing:
		return nil
	case llm.FrameDelta:
		if f.Text == "" {
			return nil
		}
	}
	return w.put(f)
}

// put publishes a frame, in pieces if it must be, and remembers what it showed.
func (w *Writer) put(f llm.Frame) error {
	err := w.publish(f)
	if errors.Is(err, nats.ErrMaxPayload) {
		return w.putHalves(f, err)
	}
	w.sent.Add(&f)
	return err
}

// putHalves publishes a frame that was too large, or returns why it could not be.
func (w *Writer) putHalves(f llm.Frame, why error) error {
	head, tail, ok := split(f)
	if !ok {
		return why
	}
	return errors.Join(w.put(head), w.put(tail))
}

// end sends what no frame has shown yet, then the Response without what frames
// have shown.
func (w *Writer) end(f llm.Frame) error {
	if f.Response == nil {
		return w.fail(llm.Frame{Attempt: f.Attempt, Error: llm.Errorf(llm.CodeInternal, "the answer has no response")})
	}
	rest := *f.Response
	f.Response = &rest
	w.sent.Add(&f)
	if missing, ok := w.sent.Missing(rest.Content); ok {
		if missing != "" {
			_ = w.put(llm.Frame{Attempt: f.Attempt, Type: llm.FrameDelta, Text: missing}) // a loss shows as a gap
		}
		rest.Content = ""
	}
	if len(w.sent.calls) == 0 {
		for i, c := range rest.ToolCalls {
			_ = w.put(llm.Frame{Attempt: f.Attempt, Type: llm.FrameToolCall, Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
	}
	if slices.Equal(w.sent.Calls(), rest.ToolCalls) {
		rest.ToolCalls = nil
	}
	switch err := w.publish(f); {
	case errors.Is(err, nats.ErrMaxPayload):
		size, limit := len(w.buf), w.nc.MaxPayload()
		return w.fail(llm.Frame{Attempt: f.Attempt, Error: llm.Errorf(llm.CodeTooLarge,
			"the end of the answer is %d bytes, more than the %d bytes a message may hold", size, limit)})
	case errors.Is(err, errUnwritable):
		return w.fail(llm.Frame{Attempt: f.Attempt, Error: llm.Errorf(llm.CodeInternal, "the answer cannot be written as JSON")})
	default:
		return w.close(err)
	}
}

// fail sends an error frame, without its attempts if they are too large.
func (w *Writer) fail(f llm.Frame) error {
	f.Type = llm.FrameError
	if f.Error == nil {
		f.Error = llm.ErrInternal
	}
	err := w.publish(f)
	if errors.Is(err, nats.ErrMaxPayload) {
		short := *f.Error
		short.Attempts = nil
		f.Error = &short
		err = w.publish(f)
	}
	return w.close(err)
}

// close makes the frame before it the last.
func (w *Writer) close(err error) error {
	w.ended = true
	if w.ping != nil {
		w.ping.Stop()
	}
	if w.to.Inbox {
		return errors.Join(err, w.nc.Publish(w.to.Subject, nil))
	}
	return err
}

// sendPing is called by the timer, which frames leave alone: to set it anew wakes
// a thread, which costs more than all else of a frame.
func (w *Writer) sendPing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	left := w.to.PingEvery - time.Since(w.wrote)
	if left <= 0 {
		_ = w.publish(llm.Frame{Attempt: w.attempt, Type: llm.FramePing}) // a loss shows as a gap
		left = w.to.PingEvery
	}
	w.ping.Reset(left)
}

// publish numbers and sends one message. A frame over max_payload was not sent
// and uses up no number; any other failure does.
func (w *Writer) publish(f llm.Frame) error {
	f.Seq = w.seq + 1
	w.last, w.wrote = f, time.Now()
	var err error
	if w.buf, err = w.last.AppendJSON(w.buf[:0]); err != nil {
		return fmt.Errorf("%w: %w", errUnwritable, err)
	}
	if err = w.send(&w.last); errors.Is(err, nats.ErrMaxPayload) {
		return err
	}
	if w.to.Capture != "" {
		err = errors.Join(err, w.nc.Publish(w.to.Capture, w.buf))
	}
	w.seq++
	return err
}

// send picks the cheapest form of publishing, since most frames need neither a
// header nor a reply subject.
func (w *Writer) send(f *llm.Frame) error {
	msg := nats.Msg{Subject: w.to.Subject, Data: w.buf}
	if f.Seq == 1 {
		msg.Reply = w.to.FirstReply
	}
	if f.Type == llm.FramePing || w.ping != nil && !f.Terminal() && w.wrote.Sub(w.asked) >= w.to.PingEvery {
		msg.Reply = cmp.Or(msg.Reply, w.to.PingReply)
		w.asked = w.wrote
	}
	if w.to.Header != nil && (f.Seq == 1 || f.Terminal()) {
		msg.Header = w.to.Header(f)
	}
	switch {
	case msg.Header != nil:
		return w.nc.PublishMsg(new(msg))
	case msg.Reply != "":
		return w.nc.PublishRequest(msg.Subject, msg.Reply, msg.Data)
	}
	return w.nc.Publish(msg.Subject, msg.Data)
}
