package limits

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

const (
	aliveEvery     = time.Second
	silentFor      = 5 * time.Second        // a worker that says nothing for so long is dead
	recallPatience = 100 * time.Millisecond // for the others to give back and to say so
)

// fleet knows the other workers: each says every second that it lives. Only
// time in which this worker could hear counts against another.
type fleet struct {
	conn *nats.Conn
	me   string

	mu    sync.Mutex
	since time.Time // listening since then
	heard map[string]time.Time
}

func newFleet(conn *nats.Conn, me string) *fleet {
	return &fleet{conn: conn, me: me, since: time.Now(), heard: map[string]time.Time{}}
}

// listening begins anew: what was said before now may have passed unheard.
func (f *fleet) listening() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Now()
}

func (f *fleet) say() error { return f.conn.Publish(subjects.LimitAlive, []byte(f.me)) }

func (f *fleet) onAlive(msg *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard[string(msg.Data)] = time.Now()
}

// dead reports whether a worker has been silent for too long. While the
// connection is lost nobody is, since the others cannot be heard.
func (f *fleet) dead(worker string) bool {
	if !f.conn.IsConnected() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.heard[worker]
	if last.Before(f.since) {
		last = f.since
	}
	return time.Since(last) > silentFor
}

// size is the number of workers, this one included. Those of the time before a
// lost connection still count until others have been heard for a while.
func (f *fleet) size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(1)
	for worker := range f.heard {
		if worker != f.me {
			n++
		}
	}
	return n
}

// forget drops the dead, if the living could be heard.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.conn.IsConnected() || time.Since(f.since) < silentFor {
		return
	}
	for worker, last := range f.heard {
		if time.Since(last) > silentFor {
			delete(f.heard, worker)
		}
	}
}

// recalled asks for what is not used of a limit, and freed answers it.
type recalled struct {
	By  string `json:"by"`
	Key string `json:"key"`
}

type freed struct {
	By    string `json:"by"`
	Freed int64  `json:"freed"`
}

// recall asks the others to give back what they do not use of a limit, waits
// until they have, and reports whether anybody did. A worker that says nothing
// in time keeps what it has.
func (f *fleet) recall(ctx context.Context, key string) (any bool) {
	others := f.size() - 1
	if others == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, recallPatience)
	defer cancel()
	question, err := json.Marshal(recalled{f.me, key})
	if err != nil {
		return false
	}
	inbox := f.conn.NewInbox()
	sub, err := f.conn.SubscribeSync(inbox)
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := f.conn.PublishRequest(subjects.LimitRecall, inbox, question); err != nil {
		return false
	}
	for range others {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return any
		}
		var answer freed
		any = any || json.Unmarshal(msg.Data, &answer) == nil && answer.Freed > 0
	}
	return any
}

// onRecall answers another worker that is short.
func (l *Limiter) onRecall(msg *nats.Msg) {
	var question recalled
	if json.Unmarshal(msg.Data, &question) != nil || question.By == l.fleet.me {
		return
	}
	p := l.pool(question.Key)
	if p == nil {
		l.answerRecall(msg, 0)
		return
	}
	l.begin(func() { l.answerRecall(msg, p.yield(context.Background())) })
}

func (l *Limiter) answerRecall(msg *nats.Msg, n int64) {
	if data, err := json.Marshal(freed{l.fleet.me, n}); err == nil {
		_ = msg.Respond(data) // fails only with the connection
	}
}

// yield gives back all that nobody here uses, and for a while what comes back.
func (p *pool) yield(ctx context.Context) (n int64) {
	err := p.trade(ctx, func() order {
		p.wanted = p.l.clock.now() + wantedFor
		n = p.rest
		return order{want: -n}
	})
	if err != nil {
		return 0
	}
	return n
}
