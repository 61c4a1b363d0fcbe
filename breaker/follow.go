package breaker

import (
	"time"

	"github.com/llmbus/llmbus/kv"
)

// follow applies what the mirror tells. Keys without a breaker here are the
// business of other workers.
func (g *Group) follow(changes []kv.Change) {
	for _, c := range changes {
		b := g.lookup(c.Entry.Key)
		if b == nil {
			continue
		}
		switch c.Op {
		case kv.OpPut:
			if c.Old.Value != nil && c.Old.Revision == 0 { // the bucket was made anew and counts from 1
				b.apply(vanished{})
			}
			b.learn(c.Entry)
		case kv.OpDelete:
			b.apply(reset{c.Entry.Revision})
		default:
			b.apply(vanished{})
		}
	}
}

// learn applies an entry of the bucket.
func (b *Breaker) learn(e kv.Entry) {
	if e.Revision <= b.view.Load().revision {
		return
	}
	r, err := DecodeRecord(e.Value)
	if err != nil {
		b.group.log.Warn("value of a breaker ignored", "breaker", b.key, "revision", e.Revision, "error", err)
		b.apply(garbled{e.Revision})
		return
	}
	now := time.Now()
	b.apply(learned{r, e.Revision, now.Add(-e.Age(now))})
}
