package e2e

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/replay"
)

// teller tells a story of its own for every prompt, at the pace of a model.
type teller struct{}

const words = 60

// story is pieces that differ from those of every other prompt.
func story(prompt string) []string {
	pieces := make([]string, words)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("%s/%d ", prompt, i)
	}
	return pieces
}

func (teller) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	return nil, llm.Errorf(llm.CodeInternal, "stories are streamed")
}

func (teller) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		pieces := story(req.Messages[0].Content.Text())
		frame := llm.Frame{Attempt: 1, Type: llm.FrameStart, Provider: "teller"}
		for _, piece := range pieces {
			if !yield(frame, nil) {
				return
			}
			select {
			case <-time.After(time.Duration(rand.IntN(40)) * time.Millisecond):
			case <-ctx.Done():
				yield(llm.Frame{}, context.Cause(ctx))
				return
			}
			frame = llm.Frame{Attempt: 1, Type: llm.FrameDelta, Text: piece}
		}
		_ = yield(frame, nil) && yield(llm.Frame{Attempt: 1, Type: llm.FrameEnd, Response: &llm.Response{
			ID: req.ID, Content: strings.Join(pieces, ""), ServedBy: llm.ServedByModel}}, nil)
	}
}

// door is a reader's way to the server, which can be cut.
type door struct {
	srv *server.Server

	mu   sync.Mutex
	shut time.Time // until then nobody passes
	open net.Conn
}

func (d *door) InProcessConn() (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.shut) {
		return nil, errors.New("the way is cut")
	}
	var err error
	d.open, err = d.srv.InProcessConn()
	return d.open, err
}

func (d *door) cut(pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = time.Now().Add(pause)
	_ = d.open.Close()
}

// TestStreamsSurviveTheirConnections has 500 readers follow an answer each over
// a connection that is cut three times, after random frames and for up to
// 250 ms; fifty are watched by a second reader, who comes later and is cut as well.
func TestStreamsSurviveTheirConnections(t *testing.T) {
	streams := natstest.Scale(500, 50)
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		for range 3 {
			startTeller(t, natstest.Connect(t, srv))
		}
		var readers sync.WaitGroup
		var cuts cutCount
		for i := range streams {
			prompt := fmt.Sprint("story-", i)
			req := &llm.Request{ID: prompt, Feature: "f", Resumable: true,
				Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(prompt)}}}
			readers.Go(func() {
				nc, d := throughDoor(t, srv)
				defer nc.Close()
				c, err := client.New(nc)
				require.NoError(t, err)
				require.Equal(t, strings.Join(story(prompt), ""), readCut(t, c.Stream(t.Context(), req), d, &cuts))
			})
			if i%10 > 0 {
				continue
			}
			readers.Go(func() {
				<-time.After(time.Duration(rand.IntN(1000)) * time.Millisecond)
				nc, d := throughDoor(t, srv)
				defer nc.Close()
				c, err := client.New(nc)
				require.NoError(t, err)
				require.Equal(t, strings.Join(story(prompt), ""), readCut(t, untilKnown(t, c, prompt), d, &cuts))
			})
		}
		readers.Wait()
		require.Equal(t, 3*(streams+streams/10), cuts.n)
	})
}

// untilKnown watches a request that may not have reached a worker yet.
func untilKnown(t *testing.T, c *client.Client, id string) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		for {
			unknown := false
			for f, err := range c.Resume(t.Context(), id, 1) {
				if unknown = errors.Is(err, llm.ErrUnknownRequest); unknown {
					break
				}
				if !yield(f, err) {
					return
				}
			}
			if !unknown {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	}
}

type cutCount struct {
	mu sync.Mutex
	n  int
}

// readCut reads a stream and cuts its connection three times on the way.
func readCut(t *testing.T, frames iter.Seq2[llm.Frame, error], d *door, cuts *cutCount) string {
	at := rand.Perm(words / 2)[:3] // the end comes in frames, too: the reply would bring the rest at once
	slices.Sort(at)
	var text strings.Builder
	deltas := 0
	for f, err := range frames {
		require.NoError(t, err)
		text.WriteString(f.Text)
		if f.Type != llm.FrameDelta {
			continue
		}
		if len(at) > 0 && at[0] == deltas {
			at = at[1:]
			d.cut(time.Duration(rand.IntN(250)) * time.Millisecond)
			cuts.mu.Lock()
			cuts.n++
			cuts.mu.Unlock()
		}
		deltas++
	}
	return text.String()
}

func throughDoor(t *testing.T, srv *server.Server) (*nats.Conn, *door) {
	t.Helper()
	d := &door{srv: srv}
	nc, err := nats.Connect("", nats.InProcessServer(d), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	return nc, d
}

// startTeller runs a worker until the test ends.
func startTeller(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	store, err := replay.Open(t.Context(), js, replay.Options{})
	require.NoError(t, err)
	w, err := bus.New(bus.Config{Conn: nc, Completer: teller{}, Replay: store, Slots: 1000})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}
