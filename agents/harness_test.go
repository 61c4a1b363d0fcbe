package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/agents"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

// feature plays a feature over the scripted provider.
type feature struct{ *fake.Provider }

func (f feature) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if !yield(llm.Frame{Attempt: 1, Type: llm.FrameStart, Provider: "fake", Model: "m"}, nil) {
			return
		}
		for frame, err := range f.Provider.Stream(ctx, req) {
			frame.Attempt = 1
			if err != nil && ctx.Err() == nil {
				err = llm.Errorf(llm.CodeUnavailable, "%s", provider.AsFailure(err).Outcome)
			}
			if !yield(frame, err) {
				return
			}
		}
	}
}

// frames plays a feature that answers with these frames alone.
type frames []llm.Frame

func (f frames) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	return nil, llm.ErrInternal
}

func (f frames) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		for _, frame := range f {
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// rig is a face of the features a and b of the owner o, and a caller.
type rig struct {
	srv    *server.Server
	face   *agents.Face
	caller *nats.Conn
	stop   func() error // ends Run and returns what it returned
}

func start(t *testing.T, c llm.Completer, change ...func(*agents.Config)) *rig {
	t.Helper()
	srv := natstest.Server(t)
	cfg := agents.Config{Conn: natstest.Connect(t, srv), Completer: c, Owner: "o", Version: "1.2.3"}
	for _, f := range change {
		f(&cfg)
	}
	face, err := agents.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- face.Run(ctx) }()
	face.Announce([]string{"a", "b"})
	synctest.Wait()
	r := &rig{srv: srv, face: face, caller: natstest.Connect(t, srv)}
	stopped := false
	r.stop = func() error {
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if !stopped {
			require.NoError(t, r.stop())
		}
	})
	return r
}

const (
	promptA = "agents.prompt.llmbus.o.a"
	statusA = "agents.status.llmbus.o.a"
)

func (r *rig) listen(t *testing.T, subject string) *nats.Subscription {
	t.Helper()
	sub, err := r.caller.SubscribeSync(subject)
	require.NoError(t, err)
	return sub
}

// prompt sends one and returns where its answer comes.
func (r *rig) prompt(t *testing.T, payload string) *nats.Subscription {
	t.Helper()
	inbox := r.listen(t, r.caller.NewInbox())
	require.NoError(t, r.caller.PublishRequest(promptA, inbox.Subject, []byte(payload)))
	synctest.Wait()
	return inbox
}

// received takes what is there.
func received(t *testing.T, sub *nats.Subscription) (list []*nats.Msg) {
	t.Helper()
	synctest.Wait()
	for {
		n, _, err := sub.Pending()
		require.NoError(t, err)
		if n == 0 {
			return list
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		msg, err := sub.NextMsgWithContext(ctx)
		cancel()
		if errors.Is(err, nats.ErrNoResponders) {
			continue // the server says so
		}
		require.NoError(t, err)
		list = append(list, msg)
	}
}

// told is a whole answer in short: "ack", the texts, "error <code>", "-" for the
// empty message.
func told(t *testing.T, messages []*nats.Msg) (list []string) {
	t.Helper()
	for _, msg := range messages {
		var chunk struct{ Type, Data string }
		switch {
		case msg.Header.Get("Nats-Service-Error-Code") != "":
			list = append(list, "error "+msg.Header.Get("Nats-Service-Error-Code"))
		case len(msg.Data) == 0:
			require.Empty(t, msg.Header)
			list = append(list, "-")
		default:
			require.NoError(t, json.Unmarshal(msg.Data, &chunk), "%s", msg.Data)
			require.Contains(t, []string{"status", "response"}, chunk.Type)
			list = append(list, chunk.Data)
		}
	}
	return list
}
