package bus_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

func TestServiceTellsWhatTheWorkerIsAndDoes(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New()}, func(c *bus.Config) {
			c.Version, c.Features = "1.2.3", []string{"a", "b"}
			c.Status = func() any { return map[string]string{"breakers": "closed"} }
		})
		r.ask(t, msg(`{"prompt":"hi"}`))
		r.ask(t, msg(`{`))

		var info micro.Info
		require.NoError(t, json.Unmarshal(r.ask(t, nats.NewMsg("$SRV.INFO.llmbus")).Data, &info))
		require.Equal(t, "1.2.3", info.Version)
		require.Equal(t, "llm.complete.*", info.Metadata["request_subject"])
		require.Equal(t, "a,b", info.Metadata["features"])
		require.Equal(t, subjects.Status, info.Endpoints[0].Subject)

		var stats micro.Stats
		require.NoError(t, json.Unmarshal(r.ask(t, nats.NewMsg("$SRV.STATS.llmbus")).Data, &stats))
		var data bus.Stats
		require.NoError(t, json.Unmarshal(stats.Endpoints[0].Data, &data))
		require.EqualValues(t, 2, data.Requests)
		require.EqualValues(t, 1, data.Succeeded)
		require.Equal(t, map[llm.Code]int64{llm.CodeInvalidRequest: 1}, data.Errors)

		var report bus.Report
		require.NoError(t, json.Unmarshal(r.ask(t, nats.NewMsg(subjects.Status)).Data, &report))
		require.Equal(t, bus.Joined, report.State)
		require.Equal(t, info.ID, report.Worker)
		require.Equal(t, map[string]any{"breakers": "closed"}, report.Details)
	})
}

func TestEveryWorkerReportsItsStatus(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New()})
		_, stop := startWorker(t, natstest.Connect(t, r.srv), model{fake.New()})
		inbox, aimed := r.listen(t, "_INBOX.x"), r.listen(t, "$KV.llm_flags.all")
		r.publish(t, &nats.Msg{Subject: subjects.Status, Reply: inbox.Subject})
		require.Len(t, received(t, inbox), 2)
		r.publish(t, &nats.Msg{Subject: subjects.Status, Reply: aimed.Subject})
		require.Empty(t, received(t, aimed))
		require.NoError(t, stop())
	})
}

func TestASlowConsumerDoesNotEndTheService(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		nc := natstest.Connect(t, srv)
		nc.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // as an application's, before the service
		_, stop := startWorker(t, nc, model{fake.New()})
		r := &rig{caller: natstest.Connect(t, srv)}
		slow, err := nc.SubscribeSync("slow")
		require.NoError(t, err)
		require.NoError(t, slow.SetPendingLimits(1, -1))
		flush(t, nc)
		for range 5 {
			require.NoError(t, r.caller.Publish("slow", nil))
		}
		synctest.Wait()
		r.ask(t, nats.NewMsg("$SRV.PING.llmbus"))
		r.ask(t, msg(`{"prompt":"hi"}`))
		require.NoError(t, stop())
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	r := start(b, model{fake.New(fake.Answer("hello"))})
	m := msg(`{"messages":[{"role":"user","content":"hi"}]}`, subjects.HeaderTimeoutMS, "20000")
	b.ReportAllocs()
	for b.Loop() {
		r.ask(b, m)
	}
}
