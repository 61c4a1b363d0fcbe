package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/subjects"
)

// StreamName is the JetStream stream that holds the frames.
const StreamName = "LLM_STREAMS"

// maxFrames bounds the frames of one answer.
const maxFrames = 16384

// Options of the stream. The zero value suits production.
type Options struct {
	MaxAge   time.Duration // of a frame; 0 means 5 min
	MaxBytes int64         // of all frames together, on each replica; 0 means 256 MiB
	Replicas int           // at most so many; 0 means 3, and fewer where there are fewer servers
}

// Validate refuses what no stream can have.
func (o Options) Validate() error {
	switch {
	case o.MaxAge < 0 || o.MaxAge > 0 && o.MaxAge < time.Second:
		return errors.New("replay: MaxAge must be at least 1s")
	case o.MaxBytes < 0:
		return errors.New("replay: MaxBytes must not be negative")
	case o.Replicas < 0 || o.Replicas > 5:
		return errors.New("replay: Replicas must be 0 to 5")
	}
	return nil
}

func (o Options) stream() jetstream.StreamConfig {
	age := cmp.Or(o.MaxAge, 5*time.Minute)
	return jetstream.StreamConfig{
		Name: StreamName, Description: "Frames of resumable answers", Subjects: []string{subjects.Replays},
		Storage: jetstream.MemoryStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxAge: age, MaxBytes: cmp.Or(o.MaxBytes, 256<<20), MaxMsgsPerSubject: maxFrames,
		Duplicates: min(age, 2*time.Minute), AllowDirect: true, NoAck: true, Replicas: cmp.Or(o.Replicas, 3),
	}
}

// Store reads the frames that are kept. It may be used by many goroutines at
// once.
type Store struct {
	conn *nats.Conn
	get  string // subject of direct reads
}

// again is the wait before JetStream is asked once more, when it may just be
// finding a leader.
const again = 100 * time.Millisecond

// Open makes the stream if it does not exist, and sets its limits if they are
// others. Several workers may do so at once. It waits for a JetStream that is not
// there yet until ctx ends.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	want := o.stream()
	for {
		err := put(ctx, js, want)
		switch {
		case err == nil:
			return &Store{conn: js.Conn(), get: apiPrefix(js.Options()) + "DIRECT.GET." + StreamName}, nil
		case want.Replicas > 1 && tooMany(err):
			want.Replicas--
			continue
		case !transient(err):
			return nil, fmt.Errorf("open stream %s: %w", StreamName, err)
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, fmt.Errorf("open stream %s: %w", StreamName, err)
		}
	}
}

// transient reports whether the same call may succeed a little later.
func transient(err error) bool {
	for _, target := range []error{nats.ErrNoResponders, nats.ErrTimeout, context.DeadlineExceeded, jetstream.ErrNoStreamResponse,
		jetstream.ErrStreamNotFound, jetstream.ErrStreamNameAlreadyInUse} { // the last two: made by another worker just now
		if errors.Is(err, target) {
			return true
		}
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.Code == 503 && !tooMany(err)
}

// put leaves the replicas of an existing stream alone: a server may only be
// down.
func put(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	stream, err := js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err = js.CreateStream(ctx, want); !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		stream, err = js.Stream(ctx, StreamName) // another worker made it meanwhile
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	if have.MaxAge == want.MaxAge && have.MaxBytes == want.MaxBytes && have.AllowDirect {
		return nil
	}
	have.MaxAge, have.MaxBytes, have.Duplicates, have.AllowDirect = want.MaxAge, want.MaxBytes, want.Duplicates, true
	_, err = js.UpdateStream(ctx, have)
	return err
}

// tooMany reports whether fewer replicas might do.
func tooMany(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return false
	}
	switch api.ErrorCode {
	case 10074, // replicas > 1 not supported in non-clustered mode
		10005, // no suitable peers for placement
		10023, // insufficient resources
		10120: // no tier of the account for that many replicas
		return true
	}
	return false
}

func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return o.APIPrefix + "."
	}
	return jetstream.DefaultAPIPrefix
}
