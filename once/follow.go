package once

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// request to follow a call, sent to its worker.
type followRequest struct {
	Call string `json:"call"` // token of the call
	Who  string `json:"who"`  // token of who follows
}

// onFollow answers one who wants to follow a call with the frames of it.
func (o *Once) onFollow(msg *nats.Msg) {
	var ask followRequest
	if json.Unmarshal(msg.Data, &ask) != nil || !(subjects.Inboxes{}).Allowed(msg.Reply) {
		return
	}
	w := stream.NewWriter(o.cfg.Conn, stream.Target{Subject: msg.Reply, PingEvery: o.cfg.Patience / 6})
	if c := o.calls.get(ask.Call); c != nil {
		c.join(ask.Who, w)
		return
	}
	write(w, released.last)
}

// follow waits for the end of a call that another request makes, and shows its
// frames on the way. It gives up after a third of Patience without a word, since
// the last word may be lost: asking again tells more than silence. The error is errReleased, errAway, the call's own, or the
// reason why ctx ended.
func (v *visit) follow(ctx context.Context, rec *record) (*llm.Response, error) {
	if v.followed != rec.Call {
		v.hear(rec.Call)
	}
	ask, err := json.Marshal(followRequest{rec.Call, v.mine.Call})
	if err != nil {
		return nil, err
	}
	inbox := v.cfg.Conn.NewInbox()
	messages := make(chan *nats.Msg, backlog)
	sub, err := v.cfg.Conn.ChanSubscribe(inbox, messages)
	if err != nil {
		return nil, errAway
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if v.cfg.Conn.PublishRequest(subjects.Follow(rec.Worker), inbox, ask) != nil {
		return nil, errAway
	}
	v.view.begin()
	var whole stream.Assembly
	for f, err := range stream.Read(ctx, from(messages), v.cfg.Patience/3) {
		if err != nil {
			return nil, lost(ctx, err)
		}
		v.hear(rec.Call)
		if f.Type == llm.FrameEnd {
			whole.Complete(f.Response)
			return f.Response, nil
		}
		whole.Add(&f)
		if !v.view.take(f) {
			return nil, errGone
		}
	}
	return nil, errAway
}

// backlog is how many frames may wait to be shown. A reader that is slower
// loses some, and asks again.
const backlog = 1024

func from(messages <-chan *nats.Msg) stream.Next {
	return func(ctx context.Context) (*nats.Msg, error) {
		select {
		case msg := <-messages:
			return msg, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lost says why there will be no more frames of a call.
func lost(ctx context.Context, err error) error {
	e, failed := errors.AsType[*llm.Error](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !failed:
		return errAway
	case e.Code == codeReleased:
		return errReleased
	}
	return e
}
