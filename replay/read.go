package replay

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// perRead is how many frames one request asks for.
const perRead = 512

type getNext struct {
	Seq     uint64 `json:"seq"` // of the stream, not of the answer
	Subject string `json:"next_by_subj"`
	Batch   int    `json:"batch"`
}

// Read yields the payloads that are kept on a subject, oldest first; none if
// nothing is kept. They come from whichever replica is near, which may be a
// moment behind. No consumer is made. An error is the last thing yielded.
func (s *Store) Read(ctx context.Context, subject string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		inbox := s.conn.NewInbox()
		messages := make(chan *nats.Msg, perRead+1) // and the server's last word
		sub, err := s.conn.ChanSubscribe(inbox, messages)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
		for next, more := uint64(1), true; more; {
			request, err := json.Marshal(getNext{Seq: next, Subject: subject, Batch: perRead})
			if err == nil {
				err = s.conn.PublishRequest(s.get, inbox, request)
			}
			if err == nil {
				next, more, err = batch(ctx, messages, next, yield)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// batch yields the messages of one request and says where the next one begins,
// if there is more to ask for.
func batch(ctx context.Context, messages <-chan *nats.Msg, from uint64, yield func([]byte, error) bool) (next uint64, more bool, err error) {
	for next = from; ; {
		var msg *nats.Msg
		select {
		case msg = <-messages:
		case <-ctx.Done():
			return next, false, context.Cause(ctx)
		}
		switch status := msg.Header.Get("Status"); {
		case status == "204":
			return next, msg.Header.Get("Nats-Num-Pending") != "0", nil
		case status == "404":
			return next, false, nil
		case status != "":
			return next, false, &StatusError{Status: status, Description: msg.Header.Get("Description")}
		}
		at, err := strconv.ParseUint(msg.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return next, false, err
		}
		next = at + 1
		if !yield(msg.Data, nil) {
			return next, false, nil
		}
	}
}
