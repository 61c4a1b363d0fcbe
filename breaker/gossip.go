package breaker

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// announcement is the payload on llm.failures.<key>.
type announcement struct {
	By         string `json:"by"`
	Why        string `json:"why"`
	Generation uint64 `json:"generation"` // of the breaker as the sender saw it, for people
}

// announce tells the other workers of one failure. Once the breaker is open
// there is nothing to tell, so a total outage costs each worker at most
// Threshold messages. Without a connection it is dropped: a failure told late
// would count as a new one.
func (g *Group) announce(key string, generation uint64, why string) {
	if g.conn == nil || !g.conn.IsConnected() {
		return
	}
	data, err := json.Marshal(announcement{By: g.worker, Why: why, Generation: generation})
	if err == nil {
		err = g.conn.Publish(subjects.Failure(key), data)
	}
	if err != nil {
		g.log.Warn("failure not announced", "breaker", key, "error", err)
	}
}

// listen counts the failures of other workers. This worker's own have been
// counted when they happened.
func (g *Group) listen() (*nats.Subscription, error) {
	return g.conn.Subscribe(subjects.Failures, func(m *nats.Msg) {
		key, ok := subjects.ParseFailure(m.Subject)
		if !ok {
			return
		}
		b := g.lookup(key)
		if b == nil {
			return // a target that this worker does not have
		}
		var a announcement
		if err := json.Unmarshal(m.Data, &a); err != nil || a.By == "" {
			g.log.Debug("announced failure is not readable", "breaker", key) // anybody may publish there, as often as they like
			return
		}
		if a.By != g.worker {
			b.apply(heard{clip(a.Why)})
		}
	})
}
