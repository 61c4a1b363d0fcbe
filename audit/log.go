package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

const (
	maxQueued = 4096 // records that wait, at most: a few megabytes
	batchSize = 128  // records that are under way at once

	ackPatience  = 5 * time.Second // for the stream to say that it has a record
	lastPatience = 5 * time.Second // for what is left when a worker ends
	retryPause   = 500 * time.Millisecond
	tellAgain    = 10 * time.Second // between two lines about losses
)

// Config is what a Log needs.
type Config struct {
	Conn     *nats.Conn // required
	Worker   string     // required; unique for each start
	Buckets  kv.Options // replicas and storage of the stream, as of the buckets
	MaxAge   time.Duration
	MaxBytes int64        // of the whole stream; 0 means no bound
	Log      *slog.Logger // nil logs nothing
}

// Validate names what is missing.
func (c Config) Validate() error {
	switch {
	case c.Conn == nil:
		return errors.New("audit config: Conn is required")
	case c.Worker == "":
		return errors.New("audit config: Worker is required")
	case c.MaxAge < 0 || c.MaxBytes < 0:
		return errors.New("audit config: MaxAge and MaxBytes must not be negative")
	}
	return c.Buckets.Validate()
}

// Log takes decisions from many goroutines and publishes them in Run.
type Log struct {
	Config
	js    jetstream.JetStream
	queue chan Record
	lost  atomic.Uint64

	// Of Run alone.
	open    bool      // the stream was seen
	failing bool      // the last try failed
	told    uint64    // of lost, that was logged
	toldAt  time.Time // when
}

var _ chain.Auditor = (*Log)(nil)

// New makes a Log. Nothing is published before Run.
func New(c Config) (*Log, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(c.Conn, jetstream.WithPublishAsyncMaxPending(2*batchSize), jetstream.WithPublishAsyncTimeout(ackPatience))
	if err != nil {
		return nil, err
	}
	c.MaxAge = cmp.Or(c.MaxAge, DefaultMaxAge)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{Config: c, js: js, queue: make(chan Record, maxQueued)}, nil
}

// Audit takes a decision, or counts it as lost where too many wait already. It
// does not block.
func (l *Log) Audit(d chain.Decision) {
	select {
	case l.queue <- Record{Time: time.Now(), Worker: l.Worker, Decision: d}:
	default:
		l.lost.Add(1)
	}
}

// Lost is how many records this worker could not keep.
func (l *Log) Lost() uint64 { return l.lost.Load() }

// Run publishes until ctx ends, and then what waits, within 5 s. It returns nil:
// what is lost is logged.
func (l *Log) Run(ctx context.Context) error {
	var batch []*nats.Msg
	for ctx.Err() == nil {
		if len(batch) == 0 {
			select {
			case first := <-l.queue:
				batch = l.add(batch, first)
			case <-ctx.Done():
				continue
			}
		}
		batch = l.try(ctx, l.fill(batch))
		l.tell(false)
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
	defer cancel()
	for batch = l.fill(batch); len(batch) > 0 && rest.Err() == nil; batch = l.fill(batch) {
		batch = l.try(rest, batch)
	}
	l.lost.Add(uint64(len(batch) + len(l.queue)))
	l.tell(true)
	return nil
}

// fill adds what waits to a batch, as far as there is room.
func (l *Log) fill(batch []*nats.Msg) []*nats.Msg {
	for len(batch) < batchSize {
		select {
		case next := <-l.queue:
			batch = l.add(batch, next)
		default:
			return batch
		}
	}
	return batch
}

func (l *Log) add(batch []*nats.Msg, r Record) []*nats.Msg {
	r.ID = nuid.Next()
	data, err := json.Marshal(&r)
	if err != nil { // no field can fail
		l.lost.Add(1)
		return batch
	}
	return append(batch, &nats.Msg{Subject: subjects.Audit(r.Feature), Header: nats.Header{subjects.HeaderMsgID: {r.ID}}, Data: data})
}

// try publishes a batch and returns what the stream did not confirm, after a
// pause if that is anything.
func (l *Log) try(ctx context.Context, batch []*nats.Msg) []*nats.Msg {
	left, err := l.publish(ctx, batch)
	switch {
	case len(left) == 0 && l.failing:
		l.failing = false
		l.Log.LogAttrs(ctx, slog.LevelInfo, "audit records are stored again")
	case len(left) > 0 && !l.failing && ctx.Err() == nil:
		l.failing = true
		l.Log.LogAttrs(ctx, slog.LevelWarn, "audit records cannot be stored; they wait", slog.Any("error", err))
	}
	if len(left) > 0 {
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
	return left
}

// tell logs losses, at most every 10 s unless it is the last chance.
func (l *Log) tell(last bool) {
	lost := l.lost.Load()
	if lost == l.told || !last && time.Since(l.toldAt) < tellAgain {
		return
	}
	l.Log.LogAttrs(context.Background(), slog.LevelError, "audit records are lost", slog.Uint64("records", lost-l.told))
	l.told, l.toldAt = lost, time.Now()
}
