package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// errUnread means that the caller does not read, or is gone.
var errUnread = errors.New("the caller does not read")

// events writes server-sent events: one write and one flush for each frame of
// an answer. Its timer writes comments while nothing comes.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	cfg     Config
	chat    *chat
	created int64

	attempt int
	shown   bool   // a part of the answer was sent
	text    int    // bytes of text that were sent
	head    []byte // what every chunk begins with; made with the first
	buf     []byte

	mu       sync.Mutex // guards w and what follows
	provider string     // of the answer under way
	model    string     // likewise; read by the caller alone, who also sets it
	sent     bool       // the headers were sent
	quiet    bool       // nothing was sent since the timer last looked
	ended    bool       // nothing may be sent any more
	deadline time.Time  // of writes, as last set
	timer    *time.Timer
}

func newEvents(w http.ResponseWriter, cfg Config, c *chat) *events {
	e := &events{w: w, control: http.NewResponseController(w), cfg: cfg, chat: c, created: time.Now().Unix()}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timer = time.AfterFunc(cfg.HoldHeaders, e.ping)
	return e
}

// close stops the timer and reports whether the status was sent. From then on
// only the caller writes.
func (e *events) close() (begun bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.timer.Stop()
	return e.sent
}

// start notes who begins to answer.
func (e *events) start(f *llm.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.provider, e.model = f.Provider, f.Model
}

// send writes events in one piece and flushes them. resp is the answer where it
// is whole by now, nil otherwise.
func (e *events) send(data []byte, resp *llm.Response) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.quiet = false
	if resp != nil && !e.sent {
		credit(e.w.Header(), resp)
	}
	return e.write(data)
}

// write sends the headers first, if that was not done. The lock is held.
func (e *events) write(data []byte) error {
	if !e.sent {
		e.sent = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies of nginx's kind hold events back otherwise
		if e.provider != "" {
			h.Set(headerProvider, e.provider)
		}
		warn(h, e.chat.req.Warnings)
	}
	// Half of the time is enough of a deadline, so that it is not set anew for
	// each frame.
	if now := time.Now(); e.deadline.Sub(now) < e.cfg.WriteTimeout/2 {
		e.deadline = now.Add(e.cfg.WriteTimeout)
		if err := e.control.SetWriteDeadline(e.deadline); err != nil {
			return errUnread
		}
	}
	if _, err := e.w.Write(data); err != nil {
		return errUnread
	}
	if err := e.control.Flush(); err != nil {
		return errUnread
	}
	return nil
}

// comment is one line only: an empty one after it would be an event without
// data to some readers.
var comment = []byte(": waiting\n")

// ping is called by the timer.
func (e *events) ping() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	if e.quiet || !e.sent {
		_ = e.write(comment) // a caller that is gone ends the request's context
	}
	e.quiet = true
	e.timer.Reset(e.cfg.PingEvery)
}

// fail writes an error event, which is the last.
func (e *events) fail(p problem) {
	e.buf = append(e.buf[:0], "data: "...)
	e.buf = append(p.appendJSON(e.buf), "\n\n"...)
	_ = e.send(e.buf, nil) // the connection is cut in any case
}

// begin starts a chunk, up to what differs. Before the first comes the one that
// says who speaks.
func (e *events) begin() {
	e.buf = e.buf[:0]
	if e.head == nil {
		e.head = append(e.head, "data: "...)
		e.head = appendHead(e.head, e.chat.req.ID, "chat.completion.chunk", cmp.Or(e.model, e.chat.req.Feature), e.created)
		e.head = append(e.head, `,"choices":[`...)
		e.buf = append(e.buf, e.head...)
		e.buf = append(e.buf, `{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`...)
		e.finish()
	}
	e.buf = append(e.buf, e.head...)
}

// finish ends a chunk.
func (e *events) finish() {
	e.buf = append(e.buf, ']')
	if e.chat.withUsage {
		e.buf = append(e.buf, `,"usage":null`...)
	}
	e.buf = append(e.buf, "}\n\n"...)
}

func (e *events) delta(text string) []byte {
	e.begin()
	e.buf = append(e.buf, `{"index":0,"delta":{"content":`...)
	e.buf = llm.AppendString(e.buf, text)
	e.buf = append(e.buf, `},"logprobs":null,"finish_reason":null}`...)
	e.finish()
	return e.buf
}
