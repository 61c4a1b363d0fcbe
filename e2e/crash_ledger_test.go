package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// ledger is a caller that books every message the workers send it, so that at
// the end it can say whether each request got exactly one terminal message.
type ledger struct {
	nc    *nats.Conn
	inbox string
	subs  []*nats.Subscription

	mu    sync.Mutex
	pages map[string]*page // by request id
}

// page is all that came for one request.
type page struct {
	stream   bool
	sent     time.Time
	replies  [][]byte
	frames   []llm.Frame
	faults   []string      // messages that must not be
	whole    chan struct{} // closed when all that is owed has come
	answered time.Time     // when that was
}

// question is one request of a caller.
type question struct {
	stream  bool
	class   llm.Class
	timeout time.Duration // the caller's deadline
}

// end is what became of a question.
type end struct {
	reply         // on the reply subject
	text   string // what a stream showed and did not take back
	frames []llm.Frame
	took   time.Duration
}

func newLedger(t testing.TB, nc *nats.Conn) *ledger {
	t.Helper()
	l := &ledger{nc: nc, inbox: nc.NewInbox(), pages: make(map[string]*page)}
	for _, subject := range []string{l.inbox + ".*", "llm.stream.*"} {
		sub, err := nc.Subscribe(subject, l.book)
		require.NoError(t, err)
		l.subs = append(l.subs, sub)
	}
	return l
}

// book enters one message on its page.
func (l *ledger) book(msg *nats.Msg) {
	id := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[id]
	if p == nil {
		p = &page{whole: make(chan struct{})} // check tells
		l.pages[id] = p
	}
	if strings.HasPrefix(msg.Subject, l.inbox) {
		p.replies = append(p.replies, bytes.Clone(msg.Data))
	} else {
		p.enter(msg.Data)
	}
	if p.answered.IsZero() && len(p.replies) > 0 && (!p.stream || p.ended()) {
		p.answered = time.Now()
		close(p.whole)
	}
}

func (p *page) enter(data []byte) {
	f, err := llm.DecodeFrame(data)
	switch {
	case err != nil:
		p.faults = append(p.faults, "a message that is no frame")
	case p.ended():
		p.faults = append(p.faults, "a frame after the last: "+string(f.Type))
	case f.Seq != uint64(len(p.frames)+1):
		p.faults = append(p.faults, fmt.Sprintf("frame %d in place of %d", f.Seq, len(p.frames)+1))
	}
	p.frames = append(p.frames, f)
}

func (p *page) ended() bool { return len(p.frames) > 0 && p.frames[len(p.frames)-1].Terminal() }

// put sends a question and returns its id.
func (l *ledger) put(q question) (id string, err error) {
	id = rand.Text()
	payload, err := json.Marshal(map[string]any{"prompt": "hello", "stream": q.stream, "class": q.class})
	if err != nil {
		return id, err
	}
	l.mu.Lock()
	l.pages[id] = &page{stream: q.stream, sent: time.Now(), whole: make(chan struct{})}
	l.mu.Unlock()
	wayBack := min(q.timeout/10, 100*time.Millisecond) // as the client keeps it
	return id, l.nc.PublishMsg(&nats.Msg{
		Subject: subjects.Complete("f"), Reply: l.inbox + "." + id, Data: payload,
		Header: nats.Header{
			subjects.HeaderRequestID: {id},
			subjects.HeaderTimeoutMS: {strconv.FormatInt((q.timeout - wayBack).Milliseconds(), 10)},
		},
	})
}

// await returns when all that is owed to a question has come.
func (l *ledger) await(ctx context.Context, id string) (end, error) {
	l.mu.Lock()
	p := l.pages[id]
	l.mu.Unlock()
	select {
	case <-p.whole:
	case <-ctx.Done():
		return end{}, fmt.Errorf("no end of request %s: %w", id, ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := end{frames: p.frames, took: p.answered.Sub(p.sent)}
	var shown stream.Assembly
	for i := range p.frames {
		shown.Add(&p.frames[i])
	}
	e.text = shown.Text()
	return e, json.Unmarshal(p.replies[0], &e.reply)
}

// ask puts a question and waits for its end, inside its deadline.
func (l *ledger) ask(ctx context.Context, q question) (end, error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	id, err := l.put(q)
	if err != nil {
		return end{}, err
	}
	return l.await(ctx, id)
}

// check demands that every request got its one terminal message and nothing
// more, and begins a new ledger. The workers' connections must be flushed.
func (l *ledger) check(t testing.TB) {
	t.Helper()
	require.NoError(t, l.nc.Flush())
	for _, sub := range l.subs {
		require.Eventually(t, func() bool {
			waiting, _, err := sub.Pending()
			return err == nil && waiting == 0
		}, time.Second, time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.pages {
		require.Empty(t, p.faults, id)
		require.Len(t, p.replies, 1, "replies to request %s", id)
		require.Equal(t, p.stream, p.ended(), "last frame of request %s", id)
		p.agree(t)
	}
	clear(l.pages)
}

// agree demands that a stream and the reply beside it end alike, and that a cut
// answer is never called success.
func (p *page) agree(t testing.TB) {
	t.Helper()
	var r reply
	require.NoError(t, json.Unmarshal(p.replies[0], &r))
	if r.Error == nil {
		require.NotEmpty(t, r.ServedBy)
	}
	if !p.stream {
		return
	}
	last := p.frames[len(p.frames)-1]
	require.Equal(t, r.Error, last.Error, "the error on the reply subject and in the stream")
	if r.Error != nil {
		return
	}
	var shown stream.Assembly
	for i := range p.frames {
		shown.Add(&p.frames[i])
	}
	require.Equal(t, r.Content, shown.Text(), "the answer, and what the stream showed of it")
}
