package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// Names of the streams.
const (
	QueueStream   = subjects.JobsStream
	ResultsStream = subjects.ResultsStream
	DeadStream    = subjects.DeadStream
)

// StreamOptions are settings of the streams. The zero value suits production.
type StreamOptions struct {
	kv.Options
	AckWait       time.Duration // silence after which a worker is taken for dead; 0 means 30 s
	MaxAckPending int           // jobs in hand and put off, of all workers together; 0 means 10,000
	ResultTTL     time.Duration // how long answers are kept; 0 means 24 h
}

// Validate refuses what no stream can have.
func (o StreamOptions) Validate() error {
	switch {
	case o.AckWait != 0 && (o.AckWait < time.Second || o.AckWait > time.Hour):
		return errors.New("job streams: AckWait must be 1s to 1h")
	case o.MaxAckPending < 0:
		return errors.New("job streams: MaxAckPending must be 1 or more")
	case o.ResultTTL != 0 && o.ResultTTL < time.Second:
		return errors.New("job streams: ResultTTL must be at least 1s")
	}
	return o.Options.Validate()
}

const (
	deadTTL    = 30 * 24 * time.Hour
	duplicates = 10 * time.Minute // how long a second publication of a job is noticed by its id alone

	// room is kept in a message for the history that a dead letter adds.
	room = 64 << 10
)

// Streams are the three streams and the history of unfinished jobs.
type Streams struct {
	js       jetstream.JetStream
	queue    jetstream.Stream
	results  jetstream.Stream
	dead     jetstream.Stream
	consumer jetstream.Consumer // nil for tools
	records  *kv.Bucket
}

// Open makes the streams and the consumer that all workers share, or brings
// their settings up to date. Several workers may do so at once.
func Open(ctx context.Context, js jetstream.JetStream, records *kv.Bucket, o StreamOptions) (*Streams, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Streams{js: js, records: records}
	for _, table := range s.table(o) {
		var err error
		if *table.into, err = kv.OpenStream(ctx, js, o.Options, table.StreamConfig, table.amend); err != nil {
			return nil, err
		}
	}
	err := kv.Patiently(ctx, "open the consumer of "+QueueStream, func(ctx context.Context) (err error) {
		s.consumer, err = s.queue.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: subjects.Queue, Description: "Workers of llmbus", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: cmp.Or(o.AckWait, 30*time.Second), MaxDeliver: -1, MaxAckPending: cmp.Or(o.MaxAckPending, 10_000),
		})
		return err
	})
	return s, err
}

// Bind opens the streams as they are. It makes and changes none, for tools.
func Bind(ctx context.Context, js jetstream.JetStream, records *kv.Bucket) (*Streams, error) {
	s := &Streams{js: js, records: records}
	for _, table := range s.table(StreamOptions{}) {
		var err error
		if *table.into, err = js.Stream(ctx, table.Name); err != nil {
			return nil, fmt.Errorf("%w (%s)", ErrNoStreams, table.Name)
		}
	}
	return s, nil
}

// stream is one stream as it must be.
type stream struct {
	jetstream.StreamConfig
	into *jetstream.Stream
}

func (s *Streams) table(o StreamOptions) []stream {
	// What an account or a server allows besides is up to them.
	largest := int32(max(0, s.js.Conn().MaxPayload()-room))
	table := []stream{
		{into: &s.queue, StreamConfig: jetstream.StreamConfig{
			Name: QueueStream, Description: "Background requests", Subjects: []string{subjects.Jobs},
			Retention: jetstream.WorkQueuePolicy, Duplicates: duplicates, MaxMsgSize: largest}},
		{into: &s.results, StreamConfig: jetstream.StreamConfig{
			Name: ResultsStream, Description: "Answers of background requests", Subjects: []string{subjects.Results},
			MaxMsgsPerSubject: 1, MaxAge: cmp.Or(o.ResultTTL, 24*time.Hour)}},
		{into: &s.dead, StreamConfig: jetstream.StreamConfig{
			Name: DeadStream, Description: "Background requests that were given up", Subjects: []string{subjects.Dead},
			MaxMsgsPerSubject: 1, MaxAge: deadTTL}},
	}
	for i := range table {
		table[i].AllowDirect = true
	}
	return table
}

// amend sets what llmbus needs in the settings of a stream that exists.
func (s *stream) amend(have *jetstream.StreamConfig) (changed bool) {
	if !have.AllowDirect {
		have.AllowDirect, changed = true, true
	}
	if s.Name == ResultsStream && have.MaxAge != s.MaxAge {
		have.MaxAge, changed = s.MaxAge, true
		have.Duplicates = min(have.Duplicates, s.MaxAge)
	}
	return changed
}
