package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/subjects"
)

// forbidden are subjects that a caller could do harm on.
func (sc *scene) forbidden() []string {
	list := []string{
		"$KV.llm_flags.all", "$KV.llm_features.feature.default", "$KV.llm_features.provider.sim", "$KV.llm_breakers." + breakerKey, "$KV.llm_probes." + breakerKey,
		"$KV.llm_cache.x", "$KV.llm_requests.x", "$KV.llm_jobs.x", "$KV.llm_usage.x", "$KV.llm_slots.x",
		"llm.limits.minute.x.x.requests.1", "llm.limits.alive", "llm.audit.default", "llm.limits.recall", "llm.kv.limits.minute.x.x.requests.1", "llm.kv.slots.x",
		"llm.kv.flags.all", "llm.kv.breakers." + breakerKey, "llm.kv.features.feature.default", subjects.Failure(breakerKey), "llm.events.request_failed",
		"llm.replay.1", "llm.follow.w", "llm.status", "$SRV.PING", "_INBOX.worker.x", "_INBOX.operator.x", "_R_.x",
		"$JS.API.STREAM.DELETE.KV_llm_flags", "$JS.API.STREAM.PURGE.KV_llm_flags", "$JS.API.STREAM.UPDATE.LLM_JOBS", "$JS.API.CONSUMER.CREATE.LLM_JOBS",
		"$JS.API.CONSUMER.DELETE.LLM_JOBS.llm-workers", "$JS.API.CONSUMER.MSG.NEXT.LLM_JOBS.llm-workers", "$JS.ACK.LLM_JOBS.llm-workers.1.1.1.1.0",
		"llm.results.x.1", "llm.dead.default.x.1",
	}
	if sc.tenants {
		list = append(list, subjects.CompleteOf("default", sc.victim), subjects.CancelOf("1", sc.victim), subjects.ResumeOf("1", sc.victim),
			subjects.JobOf("default", sc.victim), subjects.Stream(sc.victim, "1"), subjects.Replay(sc.victim, "1"), subjects.Result(sc.victim, "1"),
			subjects.DeadLetter("default", sc.victim, "1"), subjects.Stream("", "1"), subjects.Result("", "1"), "_INBOX."+sc.victim+".x", "_INBOX.x")
	}
	if sc.says {
		list = append(list, subjects.Complete("default"), subjects.Cancel("1"), subjects.Resume("1"), subjects.Job("default"), subjects.JobOf("default", sc.attacker))
	}
	return list
}

// TestNobodyPublishesWhatIsNotItsOwn sends a mark to every such subject, which
// nobody may hear: a worker, the operator, the victim.
func TestNobodyPublishesWhatIsNotItsOwn(t *testing.T) {
	onEach(t, false, func(t *testing.T, sc *scene) {
		subjects := sc.forbidden()
		mark := func(i int) string { return fmt.Sprintf("mark-%d-", i) }
		for i, subject := range subjects {
			require.NoError(t, sc.enemy.PublishMsg(&nats.Msg{Subject: subject, Data: []byte(`{"prompt":"` + mark(i) + `"}`)}))
		}
		sc.settled(t)
		for i, subject := range subjects {
			t.Run(subject, func(t *testing.T) {
				for _, tap := range sc.taps {
					require.Empty(t, tap.marked(mark(i)))
				}
			})
		}
		sc.request(t)
	})
}

// TestNobodyAsksJetStream asks for what it holds of others, in every way.
func TestNobodyAsksJetStream(t *testing.T) {
	onEach(t, false, func(t *testing.T, sc *scene) {
		sc.live(t)
		answers := map[string]*nats.Subscription{}
		for _, q := range sc.questions() {
			inbox, err := sc.enemy.SubscribeSync(sc.enemy.NewInbox())
			require.NoError(t, err)
			require.NoError(t, sc.enemy.PublishRequest(q[0], inbox.Subject, []byte(q[1])))
			answers[q[0]+" "+q[1]] = inbox
		}
		sc.settled(t)
		for q, inbox := range answers {
			t.Run(q, func(t *testing.T) {
				n, _, err := inbox.Pending()
				require.NoError(t, err)
				for range n {
					msg, err := inbox.NextMsgWithContext(t.Context())
					if !errors.Is(err, nats.ErrNoResponders) {
						require.NoError(t, err)
						require.True(t, refusal(msg), "%s%s", msg.Header, msg.Data)
					}
				}
			})
		}
	})
}

// refusal reports whether JetStream says in a message that it has nothing.
func refusal(msg *nats.Msg) bool {
	if len(msg.Data) == 0 {
		return slices.Contains([]string{"404", "408"}, msg.Header.Get("Status"))
	}
	var body struct{ Error *struct{ Code int } }
	return json.Unmarshal(msg.Data, &body) == nil && body.Error != nil && body.Error.Code == 503 // no JetStream in this account
}

// questions are subjects and payloads.
func (sc *scene) questions() [][2]string {
	list := [][2]string{
		{"$JS.API.INFO", ""}, {"$JS.API.STREAM.NAMES", ""}, {"$JS.API.STREAM.LIST", ""}, {"$SRV.INFO", ""}, {"$SRV.STATS.llmbus", ""}, {"llm.status", ""},
		{"$SYS.REQ.SERVER.PING", ""}, {"$SYS.REQ.ACCOUNT.LLM.CONNZ", ""},
	}
	for _, stream := range []string{"LLM_JOBS", "LLM_RESULTS", "LLM_DEAD", "LLM_STREAMS", "LLM_AUDIT", "KV_llm_cache", "KV_llm_requests", "KV_llm_features", "KV_llm_flags"} {
		list = append(list, [][2]string{
			{"$JS.API.STREAM.INFO." + stream, `{"subjects_filter":">"}`}, {"$JS.API.STREAM.MSG.GET." + stream, `{"seq":1}`}, {"$JS.API.STREAM.MSG.GET." + stream, `{"last_by_subj":">"}`},
			{"$JS.API.DIRECT.GET." + stream, `{"seq":1}`}, {"$JS.API.DIRECT.GET." + stream, `{"multi_last":[">"]}`}, {"$JS.API.DIRECT.GET." + stream + ".>", ""},
			{"$JS.API.CONSUMER.CREATE." + stream, `{"stream_name":"` + stream + `","config":{"ack_policy":"none","deliver_subject":"_INBOX.x"}}`},
			{"$JS.API.CONSUMER.NAMES." + stream, ""},
		}...)
	}
	for _, id := range []string{"*", "1", ">"} {
		for _, subject := range []string{"LLM_RESULTS.llm.results." + sc.victim + "." + id, "LLM_DEAD.llm.dead.default." + sc.victim + "." + id, "LLM_DEAD.llm.dead.*." + sc.victim + "." + id} {
			list = append(list, [2]string{"$JS.API.DIRECT.GET." + subject, ""}, [2]string{"$JS.API.DIRECT.GET." + subject, `{"multi_last":[">"],"batch":100}`})
		}
	}
	return list
}
