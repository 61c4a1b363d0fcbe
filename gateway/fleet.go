package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

const (
	askEvery   = time.Second            // what workers said counts for so long
	firstReply = 2 * time.Second        // no worker answers within: there is none
	moreReply  = 100 * time.Millisecond // others of the fleet answer within
)

var errNobody = errors.New("no worker answers")

// fleet knows what the workers serve, by asking them. It may be used by many
// goroutines at once, which share one question.
type fleet struct {
	conn *nats.Conn

	mu       sync.Mutex // held while asking, so that others wait for the same answer
	asked    time.Time
	features []string // sorted
	err      error
}

// report is what the gateway reads of a worker's status.
type report struct {
	Details struct {
		Features []struct {
			Name string `json:"name"`
		} `json:"features"`
	} `json:"details"`
}

// known are the features that any worker serves; errNobody without workers.
func (f *fleet) known(ctx context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked.IsZero() || time.Since(f.asked) > askEvery {
		f.features, f.err = f.ask(context.WithoutCancel(ctx))
		f.asked = time.Now()
	}
	return f.features, f.err
}

// ask waits for the first worker, and a moment for those that know more.
func (f *fleet) ask(ctx context.Context) ([]string, error) {
	inbox := f.conn.NewInbox()
	sub, err := f.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := f.conn.PublishRequest(subjects.Status, inbox, nil); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	answers := 0
	for wait := firstReply; ; wait = moreReply {
		msg, err := next(ctx, sub, wait)
		if err != nil {
			break // whoever has not answered by now is not waited for
		}
		var r report
		if json.Unmarshal(msg.Data, &r) != nil {
			continue
		}
		answers++
		for _, feature := range r.Details.Features {
			names[feature.Name] = true
		}
	}
	if answers == 0 {
		return nil, errNobody
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func next(ctx context.Context, sub *nats.Subscription, wait time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	msg, err := sub.NextMsgWithContext(ctx)
	if err == nil && len(msg.Data) == 0 && msg.Header.Get(subjects.HeaderStatus) == subjects.StatusNoResponders {
		return nil, nats.ErrNoResponders
	}
	return msg, err
}
