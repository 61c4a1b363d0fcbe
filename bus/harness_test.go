package bus_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// model plays the chain over the scripted provider: it names the server of an
// answer and turns failures into terminal errors.
type model struct{ *fake.Provider }

func (m model) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := m.Provider.Complete(ctx, req)
	return served(req, resp), terminal(ctx, err)
}

func (m model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if !yield(llm.Frame{Attempt: 1, Type: llm.FrameStart, Provider: "fake", Model: "m"}, nil) {
			return
		}
		for f, err := range m.Provider.Stream(ctx, req) {
			f.Attempt, f.Response = 1, served(req, f.Response)
			if !yield(f, terminal(ctx, err)) {
				return
			}
		}
	}
}

func served(req *llm.Request, resp *llm.Response) *llm.Response {
	if resp != nil {
		resp.ID, resp.Provider, resp.ServedBy, resp.Metadata = req.ID, "fake", llm.ServedByModel, req.Metadata
	}
	return resp
}

func terminal(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err // the bus says why
	}
	return llm.Errorf(llm.CodeUnavailable, "%s", provider.AsFailure(err).Outcome)
}

// rig is a running worker and a caller on one server.
type rig struct {
	srv    *server.Server
	worker *bus.Worker
	caller *nats.Conn
	stop   func() error // ends Run and returns what it returned
}

func start(t testing.TB, c llm.Completer, change ...func(*bus.Config)) *rig {
	t.Helper()
	srv := natstest.Server(t)
	r := &rig{srv: srv, caller: natstest.Connect(t, srv)}
	r.worker, r.stop = startWorker(t, natstest.Connect(t, srv), c, change...)
	return r
}

func startWorker(t testing.TB, nc *nats.Conn, c llm.Completer, change ...func(*bus.Config)) (*bus.Worker, func() error) {
	t.Helper()
	cfg := bus.Config{Conn: nc, Completer: c}
	for _, f := range change {
		f(&cfg)
	}
	w, err := bus.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	require.Equal(t, bus.Joined, w.State())
	stopped := false
	stop := func() error {
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if !stopped {
			require.NoError(t, stop())
		}
	})
	return w, stop
}

func flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, nc.FlushWithContext(ctx))
}

// msg is a request to feature f; headers come in pairs.
func msg(payload string, headers ...string) *nats.Msg {
	m := &nats.Msg{Subject: subjects.Complete("f"), Data: []byte(payload), Header: nats.Header{}}
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	return m
}

// ask sends a request and waits for one reply.
func (r *rig) ask(t testing.TB, m *nats.Msg) *nats.Msg {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	reply, err := r.caller.RequestMsgWithContext(ctx, m)
	require.NoError(t, err)
	return reply
}

// refusal decodes a reply that must be an error.
func refusal(t testing.TB, m *nats.Msg) *llm.Error {
	t.Helper()
	var body struct{ Error *llm.Error }
	require.NoError(t, json.Unmarshal(m.Data, &body), "%s", m.Data)
	require.NotNil(t, body.Error, "%s", m.Data)
	require.Equal(t, body.Error.Error(), m.Header.Get(subjects.HeaderError))
	return body.Error
}

// listen subscribes the caller, ready when it returns.
func (r *rig) listen(t testing.TB, subject string) *nats.Subscription {
	t.Helper()
	sub, err := r.caller.SubscribeSync(subject)
	require.NoError(t, err)
	flush(t, r.caller)
	return sub
}

// publish sends m and waits until everything it caused is done, but for what
// waits on a clock. For bubbles.
func (r *rig) publish(t testing.TB, m *nats.Msg) {
	t.Helper()
	require.NoError(t, r.caller.PublishMsg(m))
	synctest.Wait()
}

// received takes all messages that sub holds.
func received(t testing.TB, sub *nats.Subscription) []*nats.Msg {
	t.Helper()
	n, _, err := sub.Pending()
	require.NoError(t, err)
	var msgs []*nats.Msg
	for range n {
		m, err := sub.NextMsgWithContext(context.Background())
		require.NoError(t, err)
		msgs = append(msgs, m)
	}
	return msgs
}

// types lists the frame types of messages; an empty message is "-".
func types(t testing.TB, msgs []*nats.Msg) (list []string) {
	t.Helper()
	for _, m := range msgs {
		if len(m.Data) == 0 {
			list = append(list, "-")
			continue
		}
		f, err := llm.DecodeFrame(m.Data)
		require.NoError(t, err, "%s", m.Data)
		list = append(list, string(f.Type))
	}
	return list
}

func logTo(w io.Writer) func(*bus.Config) {
	return func(c *bus.Config) { c.Log = slog.New(slog.NewTextHandler(w, nil)) }
}
