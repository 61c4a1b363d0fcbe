package e2e

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/provider/openai"
	"github.com/llmbus/llmbus/subjects"
)

// cancelled sends a streamed request, cancels it when ready says so, and returns
// how it ended.
func cancelled(nc *nats.Conn, ready func(*nats.Subscription)) (llm.Code, error) {
	id := nuid.Next() + nuid.Next()
	sub, err := nc.SubscribeSync(subjects.Stream("", id))
	if err != nil {
		return "", err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection outlives it
	request := &nats.Msg{Subject: subjects.Complete("f"), Reply: nc.NewInbox(), Data: []byte(streamed), Header: nats.Header{subjects.HeaderRequestID: {id}}}
	if err := nc.PublishMsg(request); err != nil {
		return "", err
	}
	ready(sub)
	if err := nc.Publish(subjects.Cancel(id), nil); err != nil {
		return "", err
	}
	for {
		f, err := readFrame(sub)
		if err != nil {
			return "", err
		}
		if f.Type == llm.FrameError {
			return f.Error.Code, nil
		}
	}
}

func readFrame(sub *nats.Subscription) (llm.Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	msg, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return llm.Frame{}, err
	}
	return llm.DecodeFrame(msg.Data)
}

// A thousand requests are cancelled, half of them before the first token and half
// in mid-stream; afterwards no connection to the provider is left, and no goroutine
// but those that a worker keeps.
func TestAThousandCancelsLeaveNothingOpen(t *testing.T) {
	const requests, callers = 1000, 20
	const crew = 128 // goroutines that a worker keeps for the next requests, at most
	server := simtest.Start(t)
	model, err := openai.New(openai.Config{BaseURL: server.URL() + "/v1", APIKey: "key-1"})
	require.NoError(t, err)
	p, _ := onSockets(t)
	p.providers = []*fake.Provider{fake.New()}
	use := func(name string) func(*chain.Feature) {
		return func(f *chain.Feature) { f.Targets[0].Completer, f.Targets[0].Model = model, name }
	}
	for name, ready := range map[string]func(*nats.Subscription){
		"sim-hang": func(*nats.Subscription) {
			for range time.Tick(time.Millisecond) {
				if server.Stats().InFlight > 0 {
					return
				}
			}
		},
		"sim-ok-t2000-g5ms": func(sub *nats.Subscription) {
			for f, err := readFrame(sub); err == nil && f.Type != llm.FrameDelta; f, err = readFrame(sub) {
			}
		},
	} {
		p.feature = use(name)
		f := startFleet(t, 1, p)
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		problems := make(chan string, callers)
		for range callers {
			wg.Go(func() {
				for range requests / 2 / callers {
					if code, err := cancelled(f.caller, ready); err != nil || code != llm.CodeCancelled {
						problems <- fmt.Sprint(code, err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.Empty(t, problems, name)
		require.Greater(t, server.Calls(name), requests/10, "the provider was called")
		model.Close() // what is idle may be closed; what is in use would stay
		until(t, "no connection is left", func() bool {
			stats := server.Stats()
			return stats.InFlight == 0 && stats.Open == 0
		})
		until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+crew+10 })
		f.halt()
	}
}
