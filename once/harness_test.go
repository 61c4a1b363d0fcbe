package once_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/once"
	"github.com/llmbus/llmbus/provider/fake"
)

const patience = 3 * time.Second

// model plays the chain over the scripted provider.
type model struct{ *fake.Provider }

func (m model) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := m.Provider.Complete(ctx, req)
	return served(req, resp), err
}

func (m model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if !yield(llm.Frame{Attempt: 1, Type: llm.FrameStart, Provider: "fake", Model: "m"}, nil) {
			return
		}
		for f, err := range m.Provider.Stream(ctx, req) {
			f.Attempt, f.Response = 1, served(req, f.Response)
			if !yield(f, err) {
				return
			}
		}
	}
}

func served(req *llm.Request, resp *llm.Response) *llm.Response {
	if resp == nil {
		return nil
	}
	resp.ID, resp.Provider, resp.Metadata, resp.Warnings = req.ID, "fake", req.Metadata, append(resp.Warnings, req.Warnings...)
	if resp.ServedBy == "" {
		resp.ServedBy = llm.ServedByModel
	}
	return resp
}

// fleet is some workers over one provider, each with a connection of its own.
type fleet struct {
	*fake.Provider
	server   *server.Server
	requests *kv.Bucket
	workers  []*worker
}

type worker struct {
	*once.Once
	conn *nats.Conn
	end  func()
}

func inBubble(t *testing.T, n int, test func(t *testing.T, f *fleet)) {
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		f := start(t, n, func() *nats.Conn { return natstest.Connect(t, srv) })
		f.server = srv
		defer f.halt()
		test(t, f)
	})
}

func start(t testing.TB, n int, dial func() *nats.Conn, change ...func(*once.Config)) *fleet {
	t.Helper()
	f := &fleet{Provider: fake.New()}
	for i := range n {
		w := &worker{conn: dial()}
		js, err := jetstream.New(w.conn)
		require.NoError(t, err)
		buckets, err := kv.Open(t.Context(), js, kv.Options{RequestTTL: time.Hour})
		require.NoError(t, err)
		f.requests = buckets.Requests
		c := once.Config{Conn: w.conn, Requests: buckets.Requests, Next: model{f.Provider}, Worker: fmt.Sprint("w.", i), Patience: patience, MaxAnswer: 2048}
		for _, set := range change {
			set(&c)
		}
		w.Once, err = once.New(c)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		w.end = func() {
			cancel()
			require.NoError(t, <-done)
		}
		f.workers = append(f.workers, w)
	}
	return f
}

func (f *fleet) halt() {
	for _, w := range f.workers {
		w.end()
	}
}

// keyed is a request with a key and an id of its own.
func keyed(id string, change ...func(*llm.Request)) *llm.Request {
	req := &llm.Request{ID: id, Feature: "f", Tenant: "acme", IdempotencyKey: "order 17", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}}
	for _, f := range change {
		f(req)
	}
	return req
}

// result is how a request ended.
type result struct {
	*llm.Response
	err   error
	types []llm.FrameType // of a stream
	text  string          // of a stream, as a reader shows it
}

// ask begins a request; its result comes on the channel.
func (w *worker) ask(ctx context.Context, req *llm.Request) <-chan result {
	ended := make(chan result, 1)
	go func() {
		if !req.Stream {
			resp, err := w.Complete(ctx, req)
			ended <- result{Response: resp, err: err}
			return
		}
		var r result
		for frame, err := range w.Stream(ctx, req) {
			if r.err = err; err != nil {
				break
			}
			r.types = append(r.types, frame.Type)
			switch frame.Type {
			case llm.FrameStart:
				r.text = ""
			case llm.FrameDelta:
				r.text += frame.Text
			case llm.FrameEnd:
				r.Response = frame.Response
			}
		}
		ended <- r
	}()
	return ended
}

func streamed(req *llm.Request) { req.Stream = true }

// settled lets what was begun come to rest.
func settled() {
	synctest.Wait()
	natstest.Advance(100 * time.Millisecond)
}

func (f *fleet) keys(t *testing.T) int {
	t.Helper()
	js, err := jetstream.New(f.workers[len(f.workers)-1].conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_"+f.requests.Name())
	require.NoError(t, err)
	return int(stream.CachedInfo().State.Msgs)
}
