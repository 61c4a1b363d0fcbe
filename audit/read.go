package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/subjects"
)

// Query says which records are meant. The zero Query means all.
type Query struct {
	Feature string    // empty: of every feature
	Since   time.Time // by the server's clock; zero: the oldest that are kept
}

const (
	readBatch = 256
	readerTTL = 30 * time.Second // how long the server keeps a reader that is gone
)

// Read yields the records that the stream holds now, the oldest first.
func Read(ctx context.Context, js jetstream.JetStream, q Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		consumer, err := reader(ctx, js, q)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for left := int(consumer.CachedInfo().NumPending); left > 0; { // what comes later is left out, so that there is an end
			batch, err := consumer.Fetch(min(left, readBatch), jetstream.FetchContext(ctx))
			if err == nil {
				for msg := range batch.Messages() {
					left--
					var r Record
					if json.Unmarshal(msg.Data(), &r) == nil && !yield(r, nil) { // others are not ours
						return
					}
				}
				err = batch.Error()
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read %s: %w", subjects.AuditStream, err))
				return
			}
		}
	}
}

// reader is a consumer that the server forgets by itself.
func reader(ctx context.Context, js jetstream.JetStream, q Query) (jetstream.Consumer, error) {
	c := jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, FilterSubject: subjects.Audits, InactiveThreshold: readerTTL, MemoryStorage: true}
	if q.Feature != "" {
		c.FilterSubject = subjects.Audit(q.Feature)
	}
	if !q.Since.IsZero() {
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &q.Since
	}
	consumer, err := js.CreateConsumer(ctx, subjects.AuditStream, c)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, ErrNothing
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", subjects.AuditStream, err)
	}
	return consumer, nil
}
