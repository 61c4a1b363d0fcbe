package fence

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// targets are subjects where an answer would do harm.
func (sc *scene) targets() []string {
	list := []string{
		"$KV.llm_flags.all", "$KV.llm_features.feature.default", "$KV.llm_breakers." + breakerKey, "$JS.API.STREAM.PURGE.KV_llm_flags",
		"$JS.API.STREAM.DELETE.LLM_JOBS", "$JS.ACK.LLM_JOBS.llm-workers.1.1.1.1.0", "$SRV.PING", "llm.kv.flags.all", subjects.Failure(breakerKey),
		"llm.events.request_failed", "llm.status", "llm", "_R_.x.y",
	}
	if sc.tenants { // otherwise these are the caller's own
		list = append(list, "_INBOX.worker.x", "_INBOX.x", "_INBOX."+sc.victim+".x", subjects.CompleteOf("default", sc.victim), subjects.JobOf("default", sc.victim), subjects.CancelOf("1", sc.victim),
			subjects.Stream(sc.victim, "1"), subjects.Stream("", "1"), subjects.Result(sc.victim, "1"), subjects.Replay(sc.victim, "1"))
	}
	return list
}

// carriers are what makes somebody answer: subjects that the attacker may
// publish to, as it spells them, and payloads.
func (sc *scene) carriers() []*nats.Msg {
	request := func(subject, payload string) *nats.Msg {
		return &nats.Msg{Subject: sc.own(sc.attacker, subject), Data: []byte(payload), Header: nats.Header{}}
	}
	list := []*nats.Msg{
		request(subjects.Complete("default"), `{"prompt":"hello"}`),
		request(subjects.Complete("default"), `not JSON`),
		request(subjects.Complete("default"), `{"prompt":"hello","stream":true}`),
		request(subjects.Resume("1"), ``), request(subjects.Cancel("1"), ``), request("$SRV.PING", ``), request("llm.status", ``), request("$JS.API.INFO", ``),
	}
	if sc.site.jobs {
		list = append(list, request(subjects.Job("default"), `{"prompt":"hello"}`), request(subjects.StoredResult("", "1"), ``))
	}
	return list
}

// TestNobodyAimsAnswers names a target as the reply subject of all that could be
// answered. Where the caller is in another account than the workers, the answer
// goes to that name in its own account, where nothing listens.
func TestNobodyAimsAnswers(t *testing.T) {
	onEach(t, false, func(t *testing.T, sc *scene) {
		targets, before := sc.targets(), sc.revision(t)
		for _, target := range targets {
			for _, m := range sc.carriers() {
				m.Reply = target
				require.NoError(t, sc.enemy.PublishMsg(m))
			}
		}
		sc.settled(t)
		for _, target := range targets {
			t.Run(target, func(t *testing.T) { sc.untouched(t, target) })
		}
		require.Equal(t, before, sc.revision(t), "switches are as they were")
	})
}

// TestNobodyAimsByHeader names a target in the headers that make workers or the
// server send something.
func TestNobodyAimsByHeader(t *testing.T) {
	onEach(t, false, func(t *testing.T, sc *scene) {
		targets, before := sc.targets(), sc.revision(t)
		for i, target := range targets {
			for _, m := range sc.carriers() {
				m.Header.Set("Nats-Trace-Dest", target) // the server's own message tracing
				m.Header.Set(subjects.HeaderReplyTo, target)
				m.Header.Set(subjects.HeaderRequestID, fmt.Sprint("aimed-", i))
				m.Header.Set("Nats-Rollup", "all")
				require.NoError(t, sc.enemy.PublishMsg(m))
			}
			if sc.site.jobs {
				c := sc.asEnemy
				req := question("default", "hello")
				req.ID = fmt.Sprint("reply-", i)
				require.NoError(t, sc.enemy.PublishMsg(&nats.Msg{Subject: subjects.Job("default"), Data: []byte(`{"prompt":"hello"}`),
					Header: nats.Header{subjects.HeaderRequestID: {req.ID}, subjects.HeaderReplyTo: {target}}}))
				sc.done(t, c, req.ID)
			}
		}
		sc.settled(t)
		for _, target := range targets {
			t.Run(target, func(t *testing.T) { sc.untouched(t, target) })
		}
		require.Equal(t, before, sc.revision(t), "switches are as they were")
	})
}

// TestUsersWithJobsCouldFlipSwitches shows why users.conf gives callers nothing
// of JetStream: its acknowledgement of a job goes wherever the publisher says,
// and a kill switch takes any text for off. If a server ever refuses this, users
// can have jobs.
func TestUsersWithJobsCouldFlipSwitches(t *testing.T) {
	f := forms[1]
	f.dir = changed(t, f.file, `"llm.cancel.*.globex"]`, `"llm.cancel.*.globex", "llm.jobs.*.globex"]`)
	sc := newScene(t, f)
	before := sc.revision(t)
	require.NoError(t, sc.enemy.PublishMsg(&nats.Msg{Subject: subjects.JobOf("default", sc.attacker), Reply: "$KV.llm_flags.all", Data: []byte(`{"prompt":"hello"}`)}))
	require.Eventually(t, func() bool { return sc.revision(t) > before }, patience, tick)
}

// untouched demands that nothing came on a subject but what workers send there
// by themselves.
func (sc *scene) untouched(t *testing.T, subject string) {
	t.Helper()
	for _, tap := range sc.taps {
		for _, data := range tap.on(subject) {
			require.Contains(t, []string{"llm.events.request_failed", "llm.status"}, subject, data)
			require.NotContains(t, data, "served_by")
			require.NotContains(t, data, `"seq":`)
			require.NotContains(t, data, `"type":"io.nats`)
		}
	}
}

// revision is how often a switch was ever written.
func (sc *scene) revision(t *testing.T) uint64 {
	t.Helper()
	js, err := jetstream.New(sc.operator)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "KV_llm_flags")
	require.NoError(t, err)
	return s.CachedInfo().State.LastSeq
}

// done waits for a job.
func (sc *scene) done(t *testing.T, c *client.Client, id string) {
	t.Helper()
	_, err := c.Result(t.Context(), &llm.Job{ID: id})
	require.NoError(t, err)
}
