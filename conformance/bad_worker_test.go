package conformance_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/conformance"
	"github.com/llmbus/llmbus/internal/natstest"
)

// say publishes messages in the place of a worker; a leading @ sends one to the
// stream's subject instead of the reply's.
func say(nc *nats.Conn, messages ...string) nats.MsgHandler {
	return func(msg *nats.Msg) {
		id := msg.Header.Get("Llm-Request-Id")
		for _, text := range messages {
			to := msg.Reply
			if text != "" && text[0] == '@' {
				to, text = "llm.stream."+id, text[1:]
			}
			header := nats.Header{"Llm-Request-Id": {id}, "Llm-Served-By": {"model"}, "Llm-Provider": {"p"}}
			var e struct {
				Error *struct{ Code, Message string } `json:"error"`
			}
			if json.Unmarshal([]byte(text), &e) == nil && e.Error != nil {
				header = nats.Header{"Llm-Request-Id": {id}, "Nats-Service-Error": {e.Error.Code + ": " + e.Error.Message}, "Nats-Service-Error-Code": {"400"}}
			}
			_ = nc.PublishMsg(&nats.Msg{Subject: to, Header: header, Data: []byte(text)})
		}
	}
}

const (
	answer   = `{"id":"x","content":"Hello","provider":"p","served_by":"model"}`
	start    = `@{"seq":1,"attempt":1,"type":"start"}`
	second   = `@{"seq":2,"attempt":1,"type":"delta","text":"Hello"}`
	last     = `@{"seq":3,"attempt":1,"type":"end","response":{"id":"x","content":"","provider":"p","served_by":"model"}}`
	refusing = `{"error":{"code":"invalid_request","message":"temperature must be a number from 0 to 2"}}`
)

// TestTheJudgeFindsBadWorkers plays one fault after another.
func TestTheJudgeFindsBadWorkers(t *testing.T) {
	const whole, bySubject, byReply, refused = "^a whole answer$", "^frames on the stream's subject$", "asked for there$", "^refused: temperature"
	for name, tc := range map[string]struct {
		check    string
		messages []string
		want     string
	}{
		"silence":                {whole, nil, "nothing came within"},
		"no JSON":                {whole, []string{"Hello"}, "not JSON"},
		"no served_by":           {whole, []string{`{"id":"x","content":"Hello"}`}, "breaks"},
		"another id":             {whole, []string{answer}, "not the request's"},
		"an error for an answer": {whole, []string{refusing}, "an answer was due"},
		"an answer for an error": {refused, []string{answer}, "not the request's"},
		"another code":           {refused, []string{`{"error":{"code":"internal","message":"temperature"}}`}, "Nats-Service-Error-Code is not"},
		"an unnamed field":       {refused, []string{`{"error":{"code":"invalid_request","message":"bad"}}`}, "does not name temperature"},
		"no frames":              {bySubject, []string{answer}, "nothing came within"},
		"a frame too few":        {bySubject, []string{start, last, answer}, "reply: "},
		"a lost frame":           {byReply, []string{start[1:], last[1:], ""}, "frame 2 has number 3"},
		"text before start":      {byReply, []string{`{"seq":1,"attempt":1,"type":"delta","text":"a"}`, ""}, "before any start"},
		"no end":                 {byReply, []string{start[1:], second[1:], ""}, "has no end"},
		"no terminator":          {byReply, []string{start[1:], second[1:], last[1:]}, "nothing came within"},
		"two ends":               {byReply, []string{start[1:], `{"seq":2,"attempt":1,"type":"error","error":{"code":"busy","message":"m"}}`, last[1:], ""}, "follows the last"},
		"an attempt that falls":  {byReply, []string{`{"seq":1,"attempt":2,"type":"start"}`, second[1:], ""}, "lower attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				srv := natstest.Server(t)
				worker := natstest.Connect(t, srv)
				_, err := worker.Subscribe("llm.complete.*", say(worker, tc.messages...))
				require.NoError(t, err)
				require.NoError(t, worker.FlushWithContext(deadline(t)))
				got := results{}
				require.NoError(t, conformance.Worker(t.Context(), conformance.WorkerConfig{Conn: natstest.Connect(t, srv), Feature: "f",
					Match: regexp.MustCompile(tc.check), Patience: time.Second}, got.tell))
				require.Len(t, got, 1)
				for _, one := range got {
					require.ErrorContains(t, one.Err, tc.want)
				}
			})
		})
	}
}

func TestTheJudgeHearsWhatFollowsTheLastMessage(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		worker := natstest.Connect(t, srv)
		_, err := worker.Subscribe("llm.complete.*", say(worker, refusing, refusing))
		require.NoError(t, err)
		require.NoError(t, worker.FlushWithContext(deadline(t)))
		got := results{}
		require.NoError(t, conformance.Worker(t.Context(), conformance.WorkerConfig{Conn: natstest.Connect(t, srv), Feature: "f",
			Match: regexp.MustCompile("^refused: temperature|^nothing follows")}, got.tell))
		require.NoError(t, got["refused: temperature too high"].Err)
		require.ErrorContains(t, got["nothing follows the last message of any check"].Err, "temperature too high: 1 messages after the last")
	})
}

func TestNobodyToJudge(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		got := results{}
		require.NoError(t, conformance.Worker(t.Context(), conformance.WorkerConfig{Conn: natstest.Connect(t, natstest.Server(t)), Feature: "f",
			Match: regexp.MustCompile("^a whole answer$")}, got.tell))
		require.ErrorContains(t, got["a whole answer"].Err, "no worker listens to llm.complete.f")
	})
	require.ErrorContains(t, conformance.Worker(t.Context(), conformance.WorkerConfig{}, nil), "Conn must be set")
}
