package agents

import (
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// answer is the way back to the caller of one prompt. Errors of the connection
// are passed over: the caller then misses the end, which its rules are for.
type answer struct {
	conn     *nats.Conn
	to       string
	presence string // where the server reports an ack that meets nobody; empty asks for no report

	mu    sync.Mutex
	timer *time.Timer // of the next ack
	every time.Duration
}

const ack = `{"type":"status","data":"ack"}`

// begin sends the first ack, and one after each silence of that length until
// stop is called.
func (a *answer) begin(every time.Duration) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.every = every
	_ = a.conn.Publish(a.to, []byte(ack))
	a.timer = time.AfterFunc(every, a.keepAlive)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.timer.Stop()
		a.timer = nil
	}
}

// keepAlive also asks whether anybody listens.
func (a *answer) keepAlive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil { // stopped just now
		return
	}
	_ = a.conn.PublishRequest(a.to, a.presence, []byte(ack))
	a.timer.Reset(a.every)
}

// maxPiece bounds the text of one message, which JSON may make six times as
// large.
const maxPiece = 32 << 10

// say sends a text, in pieces if it is long.
func (a *answer) say(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := max(utf8.UTFMax, min(maxPiece, int(a.conn.MaxPayload())/8))
	for text != "" {
		n := len(text)
		if n > limit {
			for n = limit; !utf8.RuneStart(text[n]); n-- {
			}
		}
		data := append(llm.AppendString([]byte(`{"type":"response","data":`), text[:n]), '}')
		_ = a.conn.Publish(a.to, data)
		text = text[n:]
	}
	if a.timer != nil {
		a.timer.Reset(a.every)
	}
}

// fail sends an error, whose payload is that of any other reply, and the end.
func (a *answer) fail(e *llm.Error) {
	header := nats.Header{subjects.HeaderError: {e.Error()}, subjects.HeaderErrorCode: {strconv.Itoa(e.Code.Status())}}
	if e.RetryAfterMS > 0 {
		header.Set(subjects.HeaderRetryAfter, strconv.FormatInt((e.RetryAfterMS+999)/1000, 10))
	}
	data, err := e.AppendReply(nil)
	if err != nil {
		data = nil
	}
	_ = a.conn.PublishMsg(&nats.Msg{Subject: a.to, Header: header, Data: data})
	a.end()
}

// end sends the empty message.
func (a *answer) end() { _ = a.conn.Publish(a.to, nil) }
