package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// TestNobodyCancelsForAnother knows the id of the victim's request.
func TestNobodyCancelsForAnother(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		ended := sc.hang(t, "known")
		for _, subject := range []string{subjects.Cancel("known"), subjects.CancelOf("known", sc.victim), subjects.CancelOf("known", sc.attacker), subjects.Cancel(sc.victim + " known")} {
			require.NoError(t, sc.enemy.Publish(subject, nil))
		}
		require.NoError(t, sc.asEnemy.Cancel("known"))
		sc.settled(t)
		alive(t, ended)
		require.NoError(t, sc.client.Cancel("known"))
		require.ErrorIs(t, <-ended, llm.ErrCancelled)
	})
}

// TestNobodyTakesAnId has the attacker use the id of a request under way.
func TestNobodyTakesAnId(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		ended := sc.hang(t, "known")
		for range 8 { // whichever worker gets them
			req := question("default", "hello")
			req.ID = "known"
			_, err := sc.asEnemy.Complete(t.Context(), req)
			require.NoError(t, err)
		}
		alive(t, ended)
		require.NoError(t, sc.client.Cancel("known"))
		require.ErrorIs(t, <-ended, llm.ErrCancelled)
	})
}

// TestNobodyResumesForAnother knows the id of the victim's resumable answer.
func TestNobodyResumesForAnother(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		req := question("slow", "hello")
		req.ID, req.Resumable = "known", true
		require.NotEmpty(t, sc.read(t, sc.client.Stream(t.Context(), req)))
		for _, err := range sc.asEnemy.Resume(t.Context(), "known", 1) {
			require.ErrorIs(t, err, llm.ErrUnknownRequest)
		}
		for _, subject := range []string{subjects.ResumeOf("known", sc.victim), subjects.Resume("known") + "." + sc.attacker + "." + sc.victim} {
			inbox, err := sc.enemy.SubscribeSync(sc.enemy.NewInbox())
			require.NoError(t, err)
			require.NoError(t, sc.enemy.PublishRequest(subject, inbox.Subject, nil))
			sc.settled(t)
			if n, _, _ := inbox.Pending(); n > 0 {
				_, err := inbox.NextMsgWithContext(t.Context())
				require.ErrorIs(t, err, nats.ErrNoResponders)
			}
		}
		require.NotEmpty(t, sc.read(t, sc.client.Resume(t.Context(), "known", 1)), "the victim reads it again")
	})
}

// TestNobodyReadsAnothersResult knows the ids of the victim's jobs.
func TestNobodyReadsAnothersResult(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		c := sc.client
		if !sc.site.jobs { // somebody who may submits them for the victim
			var err error
			c, err = client.New(sc.operator, client.WithTenant(sc.victim))
			require.NoError(t, err)
		}
		good, err := c.Submit(t.Context(), question("default", "hello"))
		require.NoError(t, err)
		dead := sc.job(t, c)
		_, err = c.Result(t.Context(), good)
		require.NoError(t, err)
		_, err = c.Result(t.Context(), dead)
		require.ErrorIs(t, err, llm.ErrPolicyDenied)
		for _, id := range []string{good.ID, dead.ID} {
			for _, tenant := range []string{"", sc.victim, sc.attacker} {
				for _, subject := range []string{subjects.StoredResult(tenant, id), subjects.StoredDeadLetter(tenant, id)} {
					inbox, err := sc.enemy.SubscribeSync(sc.enemy.NewInbox())
					require.NoError(t, err)
					require.NoError(t, sc.enemy.PublishRequest(subject, inbox.Subject, nil))
					sc.settled(t)
					if n, _, _ := inbox.Pending(); n > 0 {
						msg, err := inbox.NextMsgWithContext(t.Context())
						require.True(t, errors.Is(err, nats.ErrNoResponders) || err == nil && refusal(msg))
					}
				}
			}
		}
	})
}

// TestNobodyGetsAnothersAnswers has the victim's answer in the cache and under an
// idempotency key, and the attacker asks the same.
func TestNobodyGetsAnothersAnswers(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		req := question("default", "the same")
		req.IdempotencyKey = "the same"
		_, err := sc.client.Complete(t.Context(), req)
		require.NoError(t, err)
		again, err := sc.client.Complete(t.Context(), req)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		other, err := sc.asEnemy.Complete(t.Context(), req)
		require.NoError(t, err)
		require.False(t, other.Replayed, "the key is the victim's")

		req = question("default", "asked by the victim alone")
		_, err = sc.client.Complete(t.Context(), req)
		require.NoError(t, err)
		_, err = sc.buckets.Flags.Put(t.Context(), "feature.default", []byte("off"))
		require.NoError(t, err)
		require.Eventually(t, func() bool { // both workers know of the switch
			for range 10 {
				resp, err := sc.client.Complete(t.Context(), req)
				if err != nil || resp.Fallback != llm.FallbackCached {
					return false
				}
			}
			return true
		}, patience, tick)
		resp, err := sc.asEnemy.Complete(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, llm.FallbackQueued, resp.Fallback, "nothing is in the cache for the attacker")
	})
}

// TestNobodyPassesForAnother claims the victim's name in the payload and in the
// headers. Who asked is what the workers say on llm.events.
func TestNobodyPassesForAnother(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		claim := &nats.Msg{Subject: sc.own(sc.attacker, subjects.Complete("default")),
			Data: []byte(`{"prompt":"hello","tenant":"` + sc.victim + `","Tenant":"` + sc.victim + `","metadata":{"tenant":"` + sc.victim + `"}}`),
			Header: nats.Header{subjects.HeaderTenant: {sc.victim}, subjects.HeaderRequestID: {"claimed"}, "Nats-Request-Info": {`{"acc":"` + sc.victim + `"}`},
				"tenant": {sc.victim}, "Nats-Subject": {subjects.CompleteOf("default", sc.victim)}}}
		_, err := sc.enemy.RequestMsgWithContext(t.Context(), claim)
		require.NoError(t, err)
		sc.settled(t)
		sum := sha256.Sum256([]byte(sc.attacker))
		require.Eventually(t, func() bool { return len(sc.startedBy(t, "claimed")) > 0 }, patience, tick)
		require.Equal(t, []string{hex.EncodeToString(sum[:6])}, sc.startedBy(t, "claimed"))
	})
}

// startedBy are the digests of the tenants whose request of that id was taken.
func (sc *scene) startedBy(t *testing.T, id string) (list []string) {
	t.Helper()
	for _, data := range sc.taps[0].on("llm.events.request_started") {
		var event struct {
			ID     string `json:"request_id"`
			Tenant string `json:"tenant"`
		}
		require.NoError(t, json.Unmarshal([]byte(data), &event))
		if event.ID == id {
			list = append(list, event.Tenant)
		}
	}
	return list
}

// TestNobodyAnswersForAWorker sends answers to where the victim waits for them,
// which the attacker knows, and stands in the workers' queue.
func TestNobodyAnswersForAWorker(t *testing.T) {
	onEach(t, true, func(t *testing.T, sc *scene) {
		took := make(chan string, 1000)
		for _, subject := range []string{"llm.complete.*", "llm.complete.*.*", "llm.complete.>", "llm.jobs.>", "llm.cancel.>", "llm.resume.*.*"} {
			_, err := sc.enemy.QueueSubscribe(subject, subjects.Queue, func(m *nats.Msg) { took <- m.Subject })
			require.NoError(t, err)
		}
		flush(t, sc.enemy)
		inbox := sc.nc.NewInbox()
		answers, err := sc.nc.SubscribeSync(inbox)
		require.NoError(t, err)
		frames, err := sc.nc.SubscribeSync(sc.stream1())
		require.NoError(t, err)
		flush(t, sc.nc)
		for _, subject := range []string{inbox, subjects.Stream("", "1"), subjects.Stream(sc.victim, "1"), subjects.Replay(sc.victim, "1"), "_R_." + inbox} {
			require.NoError(t, sc.enemy.Publish(subject, []byte(`{"id":"1","content":"forged","served_by":"model"}`)))
		}
		for range 50 {
			sc.request(t)
		}
		sc.settled(t)
		flush(t, sc.nc)
		for _, sub := range []*nats.Subscription{answers, frames} {
			n, _, err := sub.Pending()
			require.NoError(t, err)
			require.Zero(t, n)
		}
		for len(took) > 0 { // where it hears its own requests it answers itself alone
			require.NotContains(t, <-took, sc.victim)
		}
	})
}

// stream1 is where the victim hears its stream of the id 1.
func (sc *scene) stream1() string {
	if sc.says {
		return subjects.Stream(sc.victim, "1")
	}
	return subjects.Stream("", "1")
}

// TestNobodyImportsForAnother has a tenant's account import what is another's:
// the server does not start.
func TestNobodyImportsForAnother(t *testing.T) {
	passwords(t)
	text, err := os.ReadFile(filepath.Join(folder, "accounts.conf"))
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "account: LLM") || !strings.Contains(line, ".GLOBEX") {
			continue
		}
		n++
		t.Run(strings.Fields(line)[6], func(t *testing.T) {
			dir := changed(t, "accounts.conf", line, strings.ReplaceAll(line, ".GLOBEX", ".ACME"))
			_, err := server.ProcessConfigFile(filepath.Join(dir, "accounts.conf"))
			require.ErrorContains(t, err, "import not authorized")
		})
	}
	require.Equal(t, 9, n)
}
