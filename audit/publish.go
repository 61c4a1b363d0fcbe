package audit

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// DefaultMaxAge is how long records are kept unless they are told otherwise.
const DefaultMaxAge = 90 * 24 * time.Hour

var errDisconnected = errors.New("not connected to NATS")

// publish sends a batch at once and waits for the stream's word on each message.
// It returns those that are not confirmed and why the last of them was not; one
// that is stored all the same is recognised by its id when it comes again.
func (l *Log) publish(ctx context.Context, batch []*nats.Msg) (left []*nats.Msg, err error) {
	ctx, cancel := context.WithTimeout(ctx, ackPatience)
	defer cancel()
	if !l.Conn.IsConnected() {
		return batch, errDisconnected
	}
	if err := l.openStream(ctx); err != nil {
		return batch, err
	}
	acks := make([]jetstream.PubAckFuture, len(batch))
	for i, msg := range batch {
		if acks[i], err = l.js.PublishMsgAsync(msg); err != nil {
			return batch, err
		}
	}
	for i, ack := range acks {
		select {
		case <-ack.Ok():
			continue
		case err = <-ack.Err():
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		left = append(left, batch[i])
		l.open = l.open && !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, nats.ErrNoResponders) // it may be gone
	}
	return left, err
}

// openStream makes the stream before the first record, and again if it is gone.
func (l *Log) openStream(ctx context.Context) error {
	if l.open {
		return nil
	}
	want := jetstream.StreamConfig{
		Name: subjects.AuditStream, Description: "How each request was routed", Subjects: []string{subjects.Audits},
		MaxAge: l.MaxAge, MaxBytes: maxBytes(l.MaxBytes), DenyDelete: true, DenyPurge: true, AllowDirect: true,
	}
	_, err := kv.OpenStream(ctx, l.js, l.Buckets, want, func(have *jetstream.StreamConfig) (changed bool) {
		if have.MaxAge != want.MaxAge {
			have.MaxAge, changed = want.MaxAge, true
		}
		if have.MaxBytes != want.MaxBytes {
			have.MaxBytes, changed = want.MaxBytes, true
		}
		return changed
	})
	l.open = err == nil
	return err
}

// maxBytes is -1 for no bound, as the server has it.
func maxBytes(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}
