package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// connections share the callers of a side.
const connections = 4

// prompt is a request of about n bytes.
func prompt(n int, stream bool) []byte {
	const filler = "The quick brown fox jumps over the lazy dog. "
	text := strings.Repeat(filler, n/len(filler)+1)[:n]
	body := fmt.Appendf(nil, `{"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":%q}]`, text)
	if stream {
		body = append(body, `,"stream":true`...)
	}
	return append(body, '}')
}

// caller asks one question after another and listens on an inbox of its own.
type caller struct {
	nc     *nats.Conn
	sub    *nats.Subscription
	inbox  string
	asked  int
	to     func() (subject string, h nats.Header)
	body   []byte
	stream bool
}

// answered is what one question brought.
type answered struct {
	first  time.Duration // until the first token
	whole  time.Duration
	tokens int // that were seen, of a stream
}

// ask counts from due, when the question should have been sent.
func (c *caller) ask(ctx context.Context, due time.Time) (a answered, err error) {
	c.asked++
	reply := c.inbox + strconv.Itoa(c.asked)
	if err := c.send(reply); err != nil {
		return a, err
	}
	for {
		m, err := c.sub.NextMsgWithContext(ctx)
		switch {
		case err != nil:
			return a, err
		case m.Subject != reply: // of an earlier question that was given up
			continue
		case m.Header.Get(subjects.HeaderStatus) != "":
			return a, nats.ErrNoResponders
		case m.Header.Get(subjects.HeaderError) != "":
			return a, errors.New(m.Header.Get(subjects.HeaderError))
		}
		if a.tokens += bytes.Count(m.Data, []byte(token)); a.first == 0 && a.tokens > 0 {
			a.first = time.Since(due)
		}
		if !c.stream || len(m.Data) == 0 {
			a.whole = time.Since(due)
			return a, nil
		}
	}
}

func (c *caller) send(reply string) error {
	subject, h := c.to()
	if h == nil {
		return c.nc.PublishRequest(subject, reply, c.body)
	}
	return c.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Header: h, Data: c.body})
}

// crowd is all callers of a side.
type crowd struct {
	callers []*caller
	conns   []*nats.Conn
}

func gather(s side, sc scenario) (*crowd, error) {
	c := &crowd{}
	for range connections {
		nc, err := nats.Connect(s.nats)
		if err != nil {
			c.leave()
			return nil, err
		}
		c.conns = append(c.conns, nc)
	}
	for i := range max(sc.callers, sc.idle) {
		nc, inbox := c.conns[i%connections], nats.NewInbox()+"."
		sub, err := nc.SubscribeSync(inbox + "*")
		if err != nil {
			c.leave()
			return nil, err
		}
		c.callers = append(c.callers, &caller{nc: nc, sub: sub, inbox: inbox, to: sc.to(s), body: prompt(sc.prompt, sc.stream), stream: sc.stream})
	}
	return c, nil
}

func (c *crowd) leave() {
	for _, nc := range c.conns {
		nc.Close()
	}
}

// drive has the callers ask for so long and returns what they got. An error is
// the first that a caller met.
func (c *crowd) drive(ctx context.Context, sc scenario, span time.Duration) ([]answered, error) {
	begun := time.Now()
	end := begun.Add(span)
	ctx, cancel := context.WithDeadline(ctx, end.Add(patience))
	defer cancel()
	var next atomic.Int64
	all, failures := make([][]answered, len(c.callers)), make([]error, len(c.callers))
	var asking sync.WaitGroup
	for i, who := range c.callers {
		asking.Go(func() {
			for failures[i] == nil {
				due := time.Now()
				if sc.rate > 0 { // each question has its time, however late the answers before it are
					due = begun.Add(time.Duration(float64(next.Add(1)-1) / sc.rate * float64(time.Second)))
				}
				if !due.Before(end) {
					return
				}
				time.Sleep(time.Until(due))
				a, err := who.ask(ctx, due)
				if failures[i] = err; err == nil {
					all[i] = append(all[i], a)
				}
			}
		})
	}
	asking.Wait()
	var joined []answered
	for i := range all {
		if failures[i] != nil {
			return nil, failures[i]
		}
		joined = append(joined, all[i]...)
	}
	return joined, nil
}
