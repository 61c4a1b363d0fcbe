package bus_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

func TestAnswersARequest(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Answer("hello"))
		r := start(t, model{p}, func(c *bus.Config) { c.TenantHeader = true })
		reply := r.ask(t, msg(`{"prompt":"hi","metadata":{"a":1}}`,
			subjects.HeaderRequestID, "id-1", subjects.HeaderClass, "background", subjects.HeaderTenant, "acme", subjects.HeaderTraceParent, "00-x"))
		resp, err := llm.DecodeReply(reply.Data)
		require.NoError(t, err)
		require.Equal(t, "hello", resp.Content)
		require.Equal(t, "id-1", resp.ID)
		require.JSONEq(t, `{"a":1}`, string(resp.Metadata))
		require.Equal(t, "id-1", reply.Header.Get(subjects.HeaderRequestID))
		require.Equal(t, "fake", reply.Header.Get(subjects.HeaderProvider))
		require.Equal(t, "model", reply.Header.Get(subjects.HeaderServedBy))

		got := p.Calls()[0].Request
		require.Equal(t, []string{"f", "acme", "id-1", "00-x", "background"}, []string{got.Feature, got.Tenant, got.ID, got.TraceParent, string(got.Class)})
		stats := r.worker.Stats()
		require.EqualValues(t, 1, stats.Requests)
		require.EqualValues(t, 1, stats.Succeeded)
	})
}

func TestMakesAnIDWhereNoneCame(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, model{fake.New()})
		seen := map[string]bool{}
		for range 10 {
			id := r.ask(t, msg(`{"prompt":"hi"}`)).Header.Get(subjects.HeaderRequestID)
			require.GreaterOrEqual(t, len(id), 26, "128 random bits")
			require.False(t, seen[id])
			seen[id] = true
		}
	})
}

func TestRefusesWhatItCannotAdmit(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New()
		r := start(t, model{p}, func(c *bus.Config) { c.TenantHeader = true })
		bad := msg(`{"prompt":"hi"}`)
		bad.Subject = subjects.Complete("Bad")
		for name, tc := range map[string]struct {
			msg  *nats.Msg
			want string
		}{
			"payload":           {msg(`{"messages":7}`), "messages must be a list"},
			"empty":             {msg(``), "the payload is empty"},
			"id":                {msg(`{"prompt":"hi"}`, subjects.HeaderRequestID, "a b"), "Llm-Request-Id must be"},
			"class":             {msg(`{"prompt":"hi"}`, subjects.HeaderClass, "x"), "Llm-Class must be"},
			"timeout":           {msg(`{"prompt":"hi"}`, subjects.HeaderTimeoutMS, "soon"), "Llm-Timeout-Ms must be"},
			"tenant":            {msg(`{"prompt":"hi"}`, subjects.HeaderTenant, "a b"), "Llm-Tenant must be"},
			"feature":           {bad, "the feature in the subject must be"},
			"stream without id": {msg(`{"prompt":"hi","stream":true,"stream_to":"subject"}`), "stream_to must be reply where no Llm-Request-Id"},
		} {
			reply := r.ask(t, tc.msg)
			e := refusal(t, reply)
			require.Equal(t, llm.CodeInvalidRequest, e.Code, name)
			require.Contains(t, e.Message, tc.want, name)
			require.Equal(t, "400", reply.Header.Get(subjects.HeaderErrorCode), name)
		}
		require.Zero(t, p.Count())
	})
}

func TestDeadlineIsTheLeastOfAll(t *testing.T) {
	for name, tc := range map[string]struct {
		payload, header string
		want            time.Duration
		called          bool
	}{
		"header":       {`{"prompt":"a","timeout_ms":9000}`, "2000", 2 * time.Second, true},
		"body":         {`{"prompt":"a","timeout_ms":3000}`, "9000", 3 * time.Second, true},
		"worker":       {`{"prompt":"a"}`, "", time.Minute, true},
		"far too long": {`{"prompt":"a"}`, "9223372036854775807", time.Minute, true},
		"none left":    {`{"prompt":"a"}`, "0", 0, false},
		"long past":    {`{"prompt":"a"}`, "-9223372036854775808", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				p := fake.New(fake.Hangs())
				r := start(t, model{p}, func(c *bus.Config) { c.MaxTimeout = time.Minute })
				began := time.Now()
				e := refusal(t, r.ask(t, msg(tc.payload, subjects.HeaderTimeoutMS, tc.header)))
				require.Equal(t, llm.CodeDeadline, e.Code)
				require.Equal(t, tc.want, time.Since(began))
				require.Equal(t, tc.called, p.Count() == 1)
			})
		})
	}
}

// awkward is a Completer that breaks the rules.
type awkward struct {
	complete func(context.Context) (*llm.Response, error)
}

func (a awkward) Complete(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
	return a.complete(ctx)
}

func (a awkward) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if _, err := a.complete(ctx); err != nil {
			yield(llm.Frame{}, err)
		}
	}
}

func TestOneTerminalMessageWhateverHappens(t *testing.T) {
	const secret = "the prompt"
	for name, tc := range map[string]struct {
		complete func(context.Context) (*llm.Response, error)
		want     llm.Code
	}{
		"panic":          {func(context.Context) (*llm.Response, error) { panic(secret) }, llm.CodeInternal},
		"unknown error":  {func(context.Context) (*llm.Response, error) { return nil, context.Canceled }, llm.CodeInternal},
		"nothing":        {func(context.Context) (*llm.Response, error) { return nil, nil }, llm.CodeInternal},
		"cannot marshal": {func(context.Context) (*llm.Response, error) { return &llm.Response{JSON: []byte("{")}, nil }, llm.CodeInternal},
		"deaf": {func(ctx context.Context) (*llm.Response, error) {
			<-time.After(time.Hour)
			return &llm.Response{Content: "late"}, nil
		}, llm.CodeDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []string{"false", "true"} {
				natstest.Bubble(t, func(t *testing.T) {
					var log strings.Builder
					r := start(t, awkward{tc.complete}, logTo(&log))
					inbox := r.listen(t, "_INBOX.all")
					m := msg(`{"prompt":"`+secret+`","timeout_ms":1000,"stream":`+stream+`}`, subjects.HeaderRequestID, "1")
					m.Reply = inbox.Subject
					frames := r.listen(t, subjects.Stream("", "1"))
					r.publish(t, m)
					<-time.After(2 * time.Hour)
					msgs := received(t, inbox)
					require.Len(t, msgs, 1)
					require.Equal(t, tc.want, refusal(t, msgs[0]).Code)
					require.NotContains(t, log.String(), secret)
					if stream == "true" {
						list := types(t, received(t, frames))
						require.Equal(t, "error", list[len(list)-1])
					}
					require.EqualValues(t, 0, r.worker.Stats().InFlight)
				})
			}
		})
	}
}

func TestTooLargeAnswersSaySo(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) { o.MaxPayload = 1024 })
	_, stop := startWorker(t, srv.Dial(), model{fake.New(fake.Answer(strings.Repeat("x", 2000)))})
	r := &rig{caller: srv.Dial()}
	e := refusal(t, r.ask(t, msg(`{"prompt":"hi"}`)))
	require.Equal(t, llm.CodeTooLarge, e.Code)
	require.Regexp(t, `the answer is 2\d\d\d bytes, more than the 1024 bytes`, e.Message)
	require.NoError(t, stop())
}

func TestConfigIsChecked(t *testing.T) {
	nc, c := natstest.Connect(t, natstest.Server(t)), model{fake.New()}
	for want, cfg := range map[string]bus.Config{
		"Conn":         {Completer: c},
		"Completer":    {Conn: nc},
		"Slots":        {Conn: nc, Completer: c, Slots: -1},
		"Grace":        {Conn: nc, Completer: c, Grace: -1},
		"MaxTimeout":   {Conn: nc, Completer: c, MaxTimeout: 25 * time.Hour},
		"PingEvery":    {Conn: nc, Completer: c, PingEvery: time.Minute},
		"TenantHeader": {Conn: nc, Completer: c, Tenants: true, TenantHeader: true},
	} {
		_, err := bus.New(cfg)
		require.ErrorContains(t, err, want)
	}
}
