package bus

import (
	"errors"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// answer is the way back to the caller of one admitted request. It may be used
// by many goroutines at once; the first finish counts.
type answer struct {
	w        *Worker
	j        *admitted
	reply    string         // gets the whole Response; empty for none
	frames   *stream.Writer // nil unless streamed
	pings    *stream.Writer // of a whole answer; nil unless asked for
	finished atomic.Bool
}

func (w *Worker) newAnswer(j *admitted) *answer {
	a := &answer{w: w, j: j, reply: j.reply}
	switch {
	case j.frames != "":
		first, ping := w.presence.subjects(j)
		to := stream.Target{Subject: j.frames, Inbox: j.inbox(), PingEvery: j.pingEvery, Header: frameHeader(j.req.ID)}
		if to.Inbox {
			a.reply = ""
		}
		if to.Capture = j.capture; to.Capture == "" {
			to.FirstReply, to.PingReply = first, ping
		} else {
			to.Greet = true // from here on the request is known to readers that come back
		}
		a.frames = stream.NewWriter(w.cfg.Conn, to)
	case j.pings != "":
		first, ping := w.presence.subjects(j)
		a.pings = stream.NewWriter(w.cfg.Conn, stream.Target{Subject: j.pings, Greet: true, PingEvery: j.pingEvery, FirstReply: first, PingReply: ping})
	}
	return a
}

func frameHeader(id string) func(*llm.Frame) nats.Header {
	return func(f *llm.Frame) nats.Header { return newEnvelope().headers(id, f.Response, f.Error) }
}

// finish sends the terminal message, unless that has been done. One of resp and
// e is nil.
func (a *answer) finish(resp *llm.Response, e *llm.Error) {
	if !a.finished.CompareAndSwap(false, true) {
		return
	}
	a.w.stats.ended(e)
	var err error
	if a.pings != nil {
		a.pings.Stop()
	}
	if a.j.capture == "" { // else readers that come back look for the id until the last frame is kept
		a.w.leaveActive(a.j) // who has the last word may use the id again at once
	}
	if a.frames != nil {
		err = a.frames.Write(lastFrame(resp, e))
	}
	a.w.leaveActive(a.j)
	if a.reply != "" {
		err = errors.Join(err, a.w.respond(a.reply, a.j.req.ID, resp, e))
	}
	if err != nil {
		a.w.log.Warn("answer not sent", "id", a.j.req.ID, "error", err)
	}
}

func lastFrame(resp *llm.Response, e *llm.Error) llm.Frame {
	if e != nil {
		return llm.Frame{Type: llm.FrameError, Error: e}
	}
	return llm.Frame{Type: llm.FrameEnd, Response: resp}
}

// maxBuffer bounds the memory that one large answer leaves to later ones, in
// bytes.
const maxBuffer = 64 << 10

// respond sends a whole answer or an error to a reply subject. What a message
// cannot hold becomes too_large.
func (w *Worker) respond(reply, id string, resp *llm.Response, e *llm.Error) error {
	v := w.envelopes.Get().(*envelope) // the client copies what it publishes
	defer w.envelopes.Put(v)
	data, err := v.data[:0], error(nil)
	if e == nil {
		data, err = resp.AppendReply(data)
		if err != nil {
			return w.respond(reply, id, nil, llm.Errorf(llm.CodeInternal, "the answer cannot be written as JSON"))
		}
	} else if data, err = e.AppendReply(data); err != nil {
		return err
	}
	if cap(data) <= maxBuffer {
		v.data = data
	}
	err = w.cfg.Conn.PublishMsg(&nats.Msg{Subject: reply, Header: v.headers(id, resp, e), Data: data})
	if !errors.Is(err, nats.ErrMaxPayload) {
		return err
	}
	if e == nil {
		e = llm.Errorf(llm.CodeTooLarge, "the answer is %d bytes, more than the %d bytes a message may hold", len(data), w.cfg.Conn.MaxPayload())
		w.stats.failed(e.Code)
	} else if len(e.Attempts) > 0 {
		e = &llm.Error{Code: e.Code, Message: e.Message, RetryAfterMS: e.RetryAfterMS, Degraded: e.Degraded, Job: e.Job}
	} else {
		return err
	}
	return w.respond(reply, id, nil, e)
}

// refuse answers a request that was not admitted.
func (w *Worker) refuse(msg *nats.Msg, e *llm.Error) {
	if !w.mayAnswer(msg) {
		return
	}
	id := msg.Header.Get(subjects.HeaderRequestID)
	if !subjects.ValidRequestID(id) {
		id = ""
	}
	w.stats.failed(e.Code)
	var err error
	switch _, tenant, _ := subjects.ParseComplete(msg.Subject); {
	case msg.Reply != "" && wantsFrames(msg):
		err = w.oneFrame(stream.Target{Subject: msg.Reply, Inbox: true, Header: frameHeader(id)}, e)
	case msg.Reply != "":
		err = w.respond(msg.Reply, id, nil, e)
	case id != "" && !w.active.has(activeKey(tenant, id)):
		err = w.oneFrame(stream.Target{Subject: subjects.Stream(tenant, id), Header: frameHeader(id)}, e)
	default:
		w.unanswerable()
	}
	if err != nil {
		w.log.Warn("refusal not sent", "id", id, "error", err)
	}
}

func (w *Worker) oneFrame(to stream.Target, e *llm.Error) error {
	return stream.NewWriter(w.cfg.Conn, to).Write(llm.Frame{Type: llm.FrameError, Error: e})
}

// mayAnswer reports whether the reply subject is one that answers may go to.
// It says so too of a request without any.
func (w *Worker) mayAnswer(msg *nats.Msg) bool {
	if msg.Reply == "" || w.cfg.Inboxes.AllowedTo(subjects.TenantOf(msg.Subject), msg.Reply) {
		return true
	}
	w.stats.badReply.Add(1)
	if n, now := w.badReplies.tick(); now {
		w.log.Warn("requests dropped: the reply subject is not an inbox", "feature_subject", msg.Subject, "count", n)
	}
	return false
}

// unanswerable counts a request that nobody could get an answer to.
func (w *Worker) unanswerable() {
	w.stats.unanswerable.Add(1)
	if n, now := w.noReplies.tick(); now {
		w.log.Warn("requests dropped: they have no reply subject and ask for no stream", "count", n)
	}
}
