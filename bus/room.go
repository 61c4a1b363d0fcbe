package bus

import (
	"context"
	"encoding/json"
	"time"

	"github.com/llmbus/llmbus/subjects"
)

// answerWithin is how long other workers have to say that they have room.
const answerWithin = 100 * time.Millisecond

// roomElsewhere asks the status of all workers and reports whether one that is
// in the group has as much room as this one must have to come back.
func (w *Worker) roomElsewhere(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	inbox := w.cfg.Conn.NewInbox()
	sub, err := w.cfg.Conn.SubscribeSync(inbox)
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := w.cfg.Conn.PublishRequest(subjects.Status, inbox, nil); err != nil {
		return false
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return false
		}
		var r Report
		if json.Unmarshal(msg.Data, &r) == nil && r.State == Joined && r.Stats.InFlight < r.Stats.Slots*3/4 {
			return true
		}
	}
}
