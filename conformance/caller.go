package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// caller is the side that asks a worker under test.
type caller struct {
	nc       *nats.Conn
	judge    *Judge
	feature  string
	slow     string
	patience time.Duration
	open     []*conversation // ended ones, which must stay silent
}

// question is one message to a worker.
type question struct {
	subject string
	id      string // sent as Llm-Request-Id; empty sends none
	header  map[string]string
	payload []byte
	reply   string // another reply subject than an inbox
}

func (c *caller) ask(payload string) question {
	return question{subject: subjects.Complete(c.feature), id: rand.Text(), payload: []byte(payload)}
}

// conversation is all that comes back to one question, in order.
type conversation struct {
	c       *caller
	name    string
	q       question
	inbox   string
	heard   chan *nats.Msg
	subs    []*nats.Subscription
	Replies []*nats.Msg // on the reply subject
	Frames  []*nats.Msg // on llm.stream.<id>
}

// buffered is more than any answer of a check has messages.
const buffered = 4096

// begin listens and then asks.
func (c *caller) begin(name string, q question) (*conversation, error) {
	v := &conversation{c: c, name: name, q: q, inbox: q.reply, heard: make(chan *nats.Msg, buffered)}
	c.open = append(c.open, v)
	if v.inbox == "" {
		v.inbox = c.nc.NewInbox()
	}
	places := []string{v.inbox}
	if q.id != "" {
		places = append(places, subjects.Stream("", q.id))
	}
	for _, place := range places {
		sub, err := c.nc.ChanSubscribe(place, v.heard)
		if err != nil {
			return nil, err
		}
		v.subs = append(v.subs, sub)
	}
	msg := &nats.Msg{Subject: q.subject, Reply: v.inbox, Header: nats.Header{}, Data: q.payload}
	if q.id != "" {
		msg.Header.Set(subjects.HeaderRequestID, q.id)
	}
	for name, value := range q.header {
		msg.Header[name] = []string{value}
	}
	return v, c.nc.PublishMsg(msg)
}

// next takes one message more.
func (v *conversation) next(ctx context.Context) (*nats.Msg, error) {
	late := time.NewTimer(v.c.patience)
	defer late.Stop()
	select {
	case msg := <-v.heard:
		if msg.Header.Get(subjects.HeaderStatus) == subjects.StatusNoResponders {
			return nil, fmt.Errorf("no worker listens to %s", v.q.subject)
		}
		if msg.Subject == v.inbox {
			v.Replies = append(v.Replies, msg)
		} else {
			v.Frames = append(v.Frames, msg)
		}
		return msg, nil
	case <-late.C:
		return nil, fmt.Errorf("nothing came within %s (%d replies, %d frames before)", v.c.patience, len(v.Replies), len(v.Frames))
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// until takes messages up to the one that makes done true.
func (v *conversation) until(ctx context.Context, done func() bool) error {
	for !done() {
		if _, err := v.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hush waits for messages that should not come, over all conversations, and
// ends them.
func (c *caller) hush(ctx context.Context, quiet time.Duration) error {
	wait := time.NewTimer(quiet)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var errs []error
	for _, v := range c.open {
		if n := len(v.heard); n > 0 {
			errs = append(errs, fmt.Errorf("%s: %d messages after the last", v.name, n))
		}
	}
	return errors.Join(errs...)
}

func (c *caller) close() {
	for _, v := range c.open {
		for _, sub := range v.subs {
			_ = sub.Unsubscribe() // fails only with the connection
		}
	}
}
