package fence

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// inner are subjects that no caller hears, be it of its own.
var inner = []string{
	"llm.replay.>", "llm.events.>", "llm.failures.>", "llm.follow.>", "llm.kv.>", "llm.audit.>", "llm.limits.>", "$KV.>", "$JS.ACK.>", "$SRV.>", "_R_.>", "_INBOX.worker.>",
}

// others are subjects on which a tenant could hear another one.
func others(victim string) []string {
	return []string{
		">", "llm.>", "llm.stream.>", "llm.stream.*", "llm.stream.*.*", "llm.stream." + victim + ".*", "llm.complete.>", "llm.complete.*." + victim,
		"llm.jobs.>", "llm.jobs.*." + victim, "llm.results.>", "llm.results." + victim + ".*", "llm.dead.>", "llm.dead.*." + victim + ".*",
		"llm.cancel.>", "llm.resume.>", "_INBOX.>", "_INBOX." + victim + ".>", "*.>", "*.*.*.*",
	}
}

// TestNobodyListens has the attacker subscribe to everything that could be worth
// it while the victim works. What a tap hears of the attacker's own is nothing,
// since it does nothing.
func TestNobodyListens(t *testing.T) {
	onEach(t, false, func(t *testing.T, sc *scene) {
		patterns := inner
		if sc.tenants {
			patterns = append(others(sc.victim), inner...)
		}
		heard := map[string]*nats.Subscription{}
		for _, pattern := range patterns {
			nc := sc.dial(t, sc.callers[1])
			sub, err := nc.SubscribeSync(pattern)
			require.NoError(t, err)
			flush(t, nc)
			heard[pattern] = sub
			if sc.tenants {
				queue, err := nc.QueueSubscribeSync(pattern, "llm-workers")
				require.NoError(t, err)
				flush(t, nc)
				heard[pattern+" in the workers' queue"] = queue
			}
		}
		sc.live(t)
		for pattern, sub := range heard {
			t.Run(pattern, func(t *testing.T) {
				n, _, err := sub.Pending()
				if err == nil && n > 0 { // a subscription that was refused is invalid
					msg, err := sub.NextMsgWithContext(t.Context())
					require.NoError(t, err)
					require.Fail(t, fmt.Sprintf("%d messages, the first on %s: %s", n, msg.Subject, msg.Data))
				}
			})
		}
	})
}
