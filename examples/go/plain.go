// Package plain is llmbus over nats.go alone: what a program may copy that does
// not want the client package. docs/clients.md tells more.
package plain

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Failed is the error that a worker answered with.
type Failed struct {
	Code         string `json:"code"`
	Message      string `json:"message"`
	RetryAfterMS int64  `json:"retry_after_ms"` // 0 is unknown
}

func (f *Failed) Error() string { return f.Code + ": " + f.Message }

// ErrBroken is an answer that is not whole: a gap, no end, or silence.
var ErrBroken = errors.New("the answer is not whole")

// Answer is what most callers read of one.
type Answer struct {
	Content  string `json:"content"`
	Provider string `json:"provider"`
	ServedBy string `json:"served_by"`
}

// NewID makes 130 random bits.
func NewID() string { return rand.Text() }

func read(msg *nats.Msg) (*Answer, error) {
	var reply struct {
		Answer
		Error *Failed `json:"error"`
	}
	switch err := json.Unmarshal(msg.Data, &reply); {
	case err != nil:
		return nil, fmt.Errorf("%w: the message is no reply", ErrBroken)
	case reply.Error != nil:
		return nil, reply.Error
	case reply.ServedBy == "":
		return nil, fmt.Errorf("%w: the message is no reply", ErrBroken)
	}
	return &reply.Answer, nil
}

func message(ctx context.Context, feature, id string, body map[string]any) (*nats.Msg, error) {
	payload, err := json.Marshal(body)
	msg := &nats.Msg{Subject: "llm.complete." + feature, Data: payload, Header: nats.Header{"Llm-Request-Id": {id}}}
	if deadline, ok := ctx.Deadline(); ok {
		msg.Header.Set("Llm-Timeout-Ms", strconv.FormatInt(time.Until(deadline).Milliseconds()*9/10, 10))
	}
	return msg, err
}

// [ask]

// Ask waits for the whole answer.
func Ask(ctx context.Context, nc *nats.Conn, feature string, body map[string]any) (*Answer, error) {
	msg, err := message(ctx, feature, NewID(), body)
	if err != nil {
		return nil, err
	}
	reply, err := nc.RequestMsgWithContext(ctx, msg) // nats.ErrNoResponders: nobody serves
	if err != nil {
		return nil, err
	}
	return read(reply)
}

// [end]

// [stream]

// Stream calls show with the whole text so far and returns the answer. Frames
// come on llm.stream.<id>, or with replyOnly on the reply subject.
func Stream(ctx context.Context, nc *nats.Conn, feature, id string, body map[string]any, silence time.Duration, replyOnly bool, show func(string)) (*Answer, error) {
	inbox, messages := nc.NewInbox(), make(chan *nats.Msg, 1024)
	places := []string{inbox}
	body["stream"], body["stream_to"] = true, "reply"
	if !replyOnly {
		places, body["stream_to"] = append(places, "llm.stream."+id), "subject"
	}
	for _, place := range places {
		sub, err := nc.ChanSubscribe(place, messages) // listen before you ask
		if err != nil {
			return nil, err
		}
		defer sub.Unsubscribe()
	}
	msg, err := message(ctx, feature, id, body)
	if err != nil {
		return nil, err
	}
	msg.Reply = inbox
	msg.Header.Set("Llm-Ping-Ms", strconv.FormatInt(silence.Milliseconds()/3, 10))
	if err := nc.PublishMsg(msg); err != nil {
		return nil, err
	}
	r := reader{inbox: inbox, replyOnly: replyOnly, show: show}
	for {
		select {
		case msg := <-messages:
			if answer, err := r.take(msg); answer != nil || err != nil {
				return answer, err
			}
		case <-time.After(silence):
			return nil, fmt.Errorf("%w: the worker fell silent", ErrBroken)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// [end]

// reader keeps the rules for readers.
type reader struct {
	inbox     string
	replyOnly bool
	show      func(string)
	text      strings.Builder
	seq       uint64
	gap       bool
}

// take returns the answer with the last message.
func (r *reader) take(msg *nats.Msg) (*Answer, error) {
	switch {
	case msg.Header.Get("Status") == "503":
		return nil, nats.ErrNoResponders
	case msg.Subject == r.inbox && !r.replyOnly: // the whole answer, whatever became of the frames
		answer, err := read(msg)
		if err == nil && !strings.HasPrefix(answer.Content, r.text.String()) {
			return nil, fmt.Errorf("%w: frames were lost, and the answer does not go on from them", ErrBroken)
		}
		if err == nil {
			r.show(answer.Content)
		}
		return answer, err
	case len(msg.Data) == 0:
		return nil, fmt.Errorf("%w: the stream ended without an end", ErrBroken)
	}
	var f struct {
		Seq      uint64  `json:"seq"`
		Type     string  `json:"type"`
		Text     string  `json:"text"`
		Response *Answer `json:"response"`
		Error    *Failed `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &f); err != nil {
		return nil, fmt.Errorf("%w: the message is no frame", ErrBroken)
	}
	if f.Seq == 1 && r.text.Len() == 0 {
		r.seq = 0 // another worker has begun
	}
	r.seq++
	if r.gap = r.gap || f.Seq != r.seq; r.gap { // show nothing after a gap
		if r.replyOnly {
			return nil, fmt.Errorf("%w: frames were lost", ErrBroken)
		}
		return nil, nil
	}
	switch f.Type {
	case "start":
		r.text.Reset() // this attempt replaces what an earlier one has shown
	case "delta":
		r.text.WriteString(f.Text)
		r.show(r.text.String())
	case "error":
		return nil, f.Error
	case "end":
		if r.replyOnly {
			f.Response.Content = r.text.String()
			return f.Response, nil
		}
	}
	return nil, nil
}
