package jobs_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// model plays the chain: a function that answers tries.
type model func(ctx context.Context, req *llm.Request, call int) (*llm.Response, error)

// asked is a model that counts its calls by job.
type asked struct {
	model
	mu    sync.Mutex
	calls map[string]int
}

func (a *asked) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	a.mu.Lock()
	a.calls[req.ID]++
	n := a.calls[req.ID]
	a.mu.Unlock()
	return a.model(ctx, req, n)
}

func (a *asked) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] { panic("not asked") }

func (a *asked) count(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[id]
}

func answers(ctx context.Context, req *llm.Request, _ int) (*llm.Response, error) {
	return answer(req), nil
}

func answer(req *llm.Request) *llm.Response {
	return &llm.Response{ID: req.ID, Content: "ok", Provider: "p", Model: "m", ServedBy: llm.ServedByModel}
}

// fails ends each of the first tries of a job with the error, and then answers.
func fails(times int, e *llm.Error) model {
	return func(_ context.Context, req *llm.Request, call int) (*llm.Response, error) {
		if call > times {
			return answer(req), nil
		}
		return nil, e
	}
}

// called is an error of a try that asked a provider.
func called(code llm.Code) *llm.Error {
	return &llm.Error{Code: code, Message: "no", Attempts: []llm.Attempt{{Provider: "p", Model: "m", Class: llm.OutcomeUnavailable}}}
}

// takes answers after a while.
func takes(d time.Duration) model {
	return func(ctx context.Context, req *llm.Request, _ int) (*llm.Response, error) {
		select {
		case <-time.After(d):
			return answer(req), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// rig is the streams on a server of their own, a publisher and a model.
type rig struct {
	srv     *server.Server
	nc      *nats.Conn
	js      jetstream.JetStream
	records *kv.Bucket
	options jobs.StreamOptions
	streams *jobs.Streams
	asked   *asked
}

func newRig(t *testing.T, m model) *rig {
	t.Helper()
	srv := natstest.Server(t)
	r := &rig{srv: srv, nc: natstest.Connect(t, srv), asked: &asked{model: m, calls: map[string]int{}}}
	r.options.Storage = jetstream.MemoryStorage
	r.js, r.records, r.streams = open(t, r.nc, r.options)
	return r
}

func open(t *testing.T, nc *nats.Conn, o jobs.StreamOptions) (jetstream.JetStream, *kv.Bucket, *jobs.Streams) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	buckets, err := kv.Open(t.Context(), js, o.Options)
	require.NoError(t, err)
	s, err := jobs.Open(t.Context(), js, buckets.Jobs, o)
	require.NoError(t, err)
	return js, buckets.Jobs, s
}

// worker is one that runs.
type worker struct {
	conn *nats.Conn
	end  func() // asks it to end, and waits
}

// start runs a worker on a connection of its own.
func (r *rig) start(t *testing.T, change ...func(*jobs.Config)) *worker {
	t.Helper()
	nc := natstest.Connect(t, r.srv, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	_, _, s := open(t, nc, r.options)
	return run(t, nc, s, r.asked, change...)
}

func run(t *testing.T, nc *nats.Conn, s *jobs.Streams, c llm.Completer, change ...func(*jobs.Config)) *worker {
	t.Helper()
	cfg := jobs.Config{Conn: nc, Streams: s, Completer: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, f := range change {
		f(&cfg)
	}
	w, err := jobs.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, w.Run(ctx)) })
	end := func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(end)
	return &worker{nc, end}
}

// publish stores a job by a core publish, as any client can.
func (r *rig) publish(t *testing.T, id string, headers ...string) {
	t.Helper()
	r.send(t, `{"prompt":"hi"}`, id, headers...)
}

func (r *rig) send(t *testing.T, payload, id string, headers ...string) {
	t.Helper()
	m := &nats.Msg{Subject: subjects.Job("f"), Data: []byte(payload), Header: nats.Header{}}
	if id != "" {
		m.Header.Set(subjects.HeaderRequestID, id)
	}
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	require.NoError(t, r.nc.PublishMsg(m))
	require.NoError(t, r.nc.Flush())
}

// result reads the stored answer of a job; nil if there is none.
func (r *rig) result(t *testing.T, id string) *llm.Response {
	t.Helper()
	s, err := r.js.Stream(t.Context(), jobs.ResultsStream)
	require.NoError(t, err)
	msg, err := s.GetLastMsgForSubject(t.Context(), subjects.Result("", id))
	if err != nil {
		require.ErrorIs(t, err, jetstream.ErrMsgNotFound)
		return nil
	}
	resp, err := llm.DecodeReply(msg.Data)
	require.NoError(t, err)
	return resp
}

// letter reads the dead letter of a job; nil if there is none.
func (r *rig) letter(t *testing.T, id string) *jobs.DeadLetter {
	t.Helper()
	s, err := r.js.Stream(t.Context(), jobs.DeadStream)
	require.NoError(t, err)
	msg, err := s.GetLastMsgForSubject(t.Context(), subjects.DeadLetter("*", "", id))
	if err != nil {
		require.ErrorIs(t, err, jetstream.ErrMsgNotFound)
		return nil
	}
	letter := new(jobs.DeadLetter)
	require.NoError(t, json.Unmarshal(msg.Data, letter))
	return letter
}

// left is how many jobs are in the queue.
func (r *rig) left(t *testing.T) int {
	t.Helper()
	return int(state(t, r.js, jobs.QueueStream).Msgs)
}

func state(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamState {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	return s.CachedInfo().State
}

// pass lets fake time go by, until nothing moves.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
