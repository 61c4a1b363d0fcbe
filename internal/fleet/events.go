package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/chain"
)

const (
	maxText    = 200 // bytes of any text of an event
	maxNotable = 30  // events of each kind that are kept

	// sameFlip is how long workers take, at most, to obey one flip: what comes
	// later is another one.
	sameFlip = 5 * time.Second

	// Events of requests are told as one if they are alike, no more than similar
	// others lie between them, and not more time than this.
	sameTrouble = 10 * time.Second
	similar     = 5
)

// ErrNotEvent means that a message is not an event.
var ErrNotEvent = errors.New("not an event: it must be a JSON object with the field event")

// DecodeEvent reads a message of llm.events.>. Unknown fields are left out.
func DecodeEvent(data []byte) (*Event, error) {
	e := &Event{}
	if json.Unmarshal(data, e) != nil || e.Name == "" {
		return nil, ErrNotEvent
	}
	e.Workers, e.Times = 0, 0
	for _, text := range []*string{&e.Name, &e.Worker, &e.RequestID, &e.Feature, &e.Tenant, &e.Provider, &e.Model, (*string)(&e.Class), (*string)(&e.Code), &e.Limit,
		&e.Breaker, (*string)(&e.From), &e.Why, &e.Flag, &e.By, &e.Reason} {
		*text = clip(*text)
	}
	return e, nil
}

// NextEvent waits for the next message. A subscription that is not permitted is
// told of only when it is asked again, so that it is asked every second; this
// needs a connection with nats.PermissionErrOnSubscribe.
func NextEvent(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	for {
		second, cancel := context.WithTimeout(ctx, time.Second)
		msg, err := sub.NextMsgWithContext(second)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return msg, err
		}
	}
}

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// notable keeps the last events that say that something is or was wrong, or has
// changed. Those of requests do not push out the others, which are rare.
type notable struct {
	requests, changes []heard // the oldest first
}

type heard struct {
	Event
	at time.Time
}

func (n *notable) take(e *Event, now time.Time) {
	switch {
	case e.Name == chain.EventRequestStarted, e.Name == chain.EventRequestSucceeded:
	case e.RequestID != "":
		n.requests = push(n.merge(e, now), heard{*e, now})
	case e.Flag == "" || !n.again(e, now):
		e.Workers = 0
		if e.Flag != "" {
			e.Workers = 1
		}
		n.changes = push(n.changes, heard{*e, now})
	}
}

// merge takes the same event of an earlier request out, to be told with this
// one: in an outage one is like the other.
func (n *notable) merge(e *Event, now time.Time) []heard {
	e.Times = 1
	for i := len(n.requests) - 1; i >= max(0, len(n.requests)-similar); i-- {
		old := &n.requests[i]
		if now.Sub(old.at) <= sameTrouble && old.kind() == e.kind() {
			e.Times += old.Times
			return slices.Delete(n.requests, i, i+1)
		}
	}
	return n.requests
}

// kind is what two events of requests have in common if they are alike.
func (e *Event) kind() [7]string {
	return [7]string{e.Name, e.Feature, e.Provider, e.Model, string(e.Class), string(e.Code), e.Limit}
}

func push(ring []heard, h heard) []heard {
	if len(ring) == maxNotable {
		ring = append(ring[:0], ring[1:]...)
	}
	return append(ring, h)
}

// again counts a flip that another worker has told already.
func (n *notable) again(e *Event, now time.Time) bool {
	for i := len(n.changes) - 1; i >= 0; i-- {
		old := &n.changes[i]
		if now.Sub(old.at) > sameFlip {
			return false
		}
		if old.Flag == e.Flag {
			if old.Revision != e.Revision || isOn(old.On) != isOn(e.On) {
				return false
			}
			old.Workers++
			return true
		}
	}
	return false
}

func isOn(on *bool) bool { return on != nil && *on }

// view merges both kinds, the newest first.
func (n *notable) view() []Event {
	list := []Event{}
	r, c := len(n.requests)-1, len(n.changes)-1
	for r >= 0 || c >= 0 {
		if c < 0 || r >= 0 && n.requests[r].at.After(n.changes[c].at) {
			list = append(list, n.requests[r].Event)
			r--
			continue
		}
		list = append(list, n.changes[c].Event)
		c--
	}
	return list
}
