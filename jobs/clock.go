package jobs

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// clock tells the server's time, by which the age of a job is measured: the
// machines of publishers and workers may disagree about theirs.
type clock struct {
	ahead atomic.Int64 // of the server, in ns
}

const clockEvery = time.Minute

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// follow compares the clocks now and then until ctx ends.
func (c *clock) follow(ctx context.Context, consumer jetstream.Consumer) {
	for {
		c.compare(ctx, consumer)
		if !sleep(ctx, clockEvery) {
			return
		}
	}
}

// compare takes the middle of a round trip for the moment of the server's
// answer. Where there is no answer the last comparison stays.
func (c *clock) compare(ctx context.Context, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(ctx, pullFor)
	defer cancel()
	asked := time.Now()
	info, err := consumer.Info(ctx)
	if err == nil && !info.TimeStamp.IsZero() {
		c.ahead.Store(int64(info.TimeStamp.Sub(asked.Add(time.Since(asked) / 2))))
	}
}
