package client_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// model plays the chain over the scripted provider.
type model struct{ *fake.Provider }

func (m model) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := m.Provider.Complete(ctx, req)
	return served(req, resp), terminal(ctx, err)
}

func (m model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if !yield(llm.Frame{Attempt: 1, Type: llm.FrameStart, Provider: "fake"}, nil) {
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
		resp.ID, resp.ServedBy = req.ID, llm.ServedByModel
	}
	return resp
}

func terminal(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return llm.Errorf(llm.CodeUnavailable, "%s", provider.AsFailure(err).Outcome)
}

// rig is a server with a client, whose workers can be real or played by hand.
type rig struct {
	srv    *server.Server
	nc     *nats.Conn // the client's
	client *client.Client
}

func newRig(t testing.TB, opts ...client.Option) *rig {
	t.Helper()
	srv := natstest.Server(t)
	r := &rig{srv: srv, nc: natstest.Connect(t, srv)}
	var err error
	r.client, err = client.New(r.nc, opts...)
	require.NoError(t, err)
	return r
}

// work starts a real worker in a bubble.
func (r *rig) work(t *testing.T, c llm.Completer, change ...func(*bus.Config)) *bus.Worker {
	t.Helper()
	cfg := bus.Config{Conn: natstest.Connect(t, r.srv), Completer: c}
	for _, f := range change {
		f(&cfg)
	}
	w, err := bus.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	synctest.Wait()
	require.Equal(t, bus.Joined, w.State())
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return w
}

// play starts a worker that does what handle says, on the connection that it
// returns.
func (r *rig) play(t *testing.T, handle func(p *played)) *nats.Conn {
	t.Helper()
	nc := natstest.Connect(t, r.srv)
	_, err := nc.QueueSubscribe(subjects.Requests, subjects.Queue, func(msg *nats.Msg) { handle(&played{nc: nc, msg: msg}) })
	require.NoError(t, err)
	synctest.Wait()
	return nc
}

// played is one request to a worker that is played by hand.
type played struct {
	nc  *nats.Conn
	msg *nats.Msg
}

// frame publishes the frame with its number as it is.
func (p *played) frame(f llm.Frame) {
	wire, err := f.AppendJSON(nil)
	if err == nil {
		err = p.nc.Publish(subjects.Stream("", p.msg.Header.Get(subjects.HeaderRequestID)), wire)
	}
	if err != nil {
		panic(err)
	}
}

func (p *played) delta(seq uint64, text string) {
	p.frame(llm.Frame{Seq: seq, Attempt: 1, Type: llm.FrameDelta, Text: text})
}

func (p *played) end(seq uint64) {
	p.frame(llm.Frame{Seq: seq, Attempt: 1, Type: llm.FrameEnd, Response: &llm.Response{ServedBy: llm.ServedByModel}})
}

func (p *played) reply(content string) {
	_ = p.msg.Respond(fmt.Appendf(nil, `{"id":"1","content":%q,"served_by":"model"}`, content))
}

func (p *played) refuse(code llm.Code, retryMS int) {
	_ = p.msg.Respond(fmt.Appendf(nil, `{"error":{"code":%q,"message":"no","retry_after_ms":%d}}`, code, retryMS))
}

func ask() *llm.Request {
	return &llm.Request{Feature: "f", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}
}

// collect reads a whole stream.
func collect(seq iter.Seq2[llm.Frame, error]) (frames []llm.Frame, err error) {
	for f, e := range seq {
		if e != nil {
			return frames, e
		}
		frames = append(frames, f)
	}
	return frames, nil
}

func text(frames []llm.Frame) (s string) {
	for _, f := range frames {
		s += f.Text
	}
	return s
}
