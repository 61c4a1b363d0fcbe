package client_test

import (
	"errors"
	"iter"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/replay"
	"github.com/llmbus/llmbus/subjects"
)

// door is the way to a server, which can be cut.
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

// cut breaks the connection for a while.
func (d *door) cut(pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = time.Now().Add(pause)
	_ = d.open.Close()
}

// reader is a client whose connection can be cut.
func (r *rig) reader(t testing.TB, opts ...client.Option) (*client.Client, *door) {
	t.Helper()
	d := &door{srv: r.srv}
	nc, err := nats.Connect("", nats.InProcessServer(d), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := client.New(nc, opts...)
	require.NoError(t, err)
	return c, d
}

// keeps opens the store of frames on the worker's connection.
func keeps(t testing.TB) func(*bus.Config) {
	return func(c *bus.Config) {
		js, err := jetstream.New(c.Conn)
		require.NoError(t, err)
		c.Replay, err = replay.Open(t.Context(), js, replay.Options{})
		require.NoError(t, err)
	}
}

func resumable() *llm.Request {
	req := ask()
	req.ID, req.Resumable = "r1", true
	return req
}

func alphabet() (pieces []string) { return strings.Split("abcdefghijklmnopqrstuvwxyz", "") }

func TestAStreamSurvivesItsConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		at    int // frames seen before the cut
		pause time.Duration
	}{
		"for a moment":               {5, 0},
		"for some frames":            {5, 450 * time.Millisecond},
		"for longer than the answer": {5, time.Minute},
		"before the first frame":     {0, time.Second},
		"after the first":            {1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				p := fake.New(fake.Step{Wait: 500 * time.Millisecond, Pieces: alphabet(), Gap: 100 * time.Millisecond})
				r := newRig(t)
				r.work(t, model{p}, keeps(t))
				c, d := r.reader(t)
				if tc.at == 0 {
					time.AfterFunc(time.Millisecond, func() { d.cut(tc.pause) })
				}
				var frames []llm.Frame
				for f, err := range c.Stream(t.Context(), resumable()) {
					require.NoError(t, err)
					if frames = append(frames, f); len(frames) == tc.at {
						d.cut(tc.pause)
					}
				}
				require.Equal(t, strings.Join(alphabet(), ""), text(frames))
				require.Equal(t, text(frames), frames[len(frames)-1].Response.Content)
				require.Len(t, p.Calls(), 1)
			})
		})
	}
}

func TestSeveralReadersWatchOneAnswer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.work(t, model{fake.New(fake.Step{Pieces: alphabet(), Gap: 100 * time.Millisecond})}, keeps(t))
		var readers sync.WaitGroup
		readers.Go(func() {
			frames, err := collect(r.client.Stream(t.Context(), resumable()))
			require.NoError(t, err)
			require.Equal(t, strings.Join(alphabet(), ""), text(frames))
		})
		natstest.Advance(750 * time.Millisecond)
		for _, from := range []uint64{1, 3, 8, 20} {
			readers.Go(func() {
				c, d := r.reader(t)
				time.AfterFunc(300*time.Millisecond, func() { d.cut(200 * time.Millisecond) })
				frames, err := collect(c.Resume(t.Context(), "r1", from))
				require.NoError(t, err)
				require.Equal(t, strings.Join(alphabet()[max(0, int(from)-3):], ""), text(frames), "frame 3 is the first text")
				if last := frames[len(frames)-1]; from == 1 {
					require.Equal(t, text(frames), last.Response.Content)
				} else {
					require.Empty(t, last.Response.Content)
				}
			})
		}
		readers.Wait()
		frames, err := collect(r.client.Resume(t.Context(), "r1", 28))
		require.NoError(t, err, "long after")
		require.Equal(t, "z", text(frames))
	})
}

func TestAReaderThatLeavesStopsNobody(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.work(t, model{fake.New(fake.Step{Pieces: alphabet(), Gap: 100 * time.Millisecond})}, keeps(t))
		go func() {
			for f := range r.client.Resume(t.Context(), "r1", 1) {
				if f.Visible() {
					break
				}
			}
		}()
		frames, err := collect(r.client.Stream(t.Context(), resumable()))
		require.NoError(t, err)
		require.Equal(t, strings.Join(alphabet(), ""), text(frames))
	})
}

func TestCancelByID(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.work(t, model{fake.New(fake.Hangs())}, keeps(t))
		other, _ := r.reader(t)
		time.AfterFunc(time.Second, func() { _ = other.Cancel("r1") })
		_, err := collect(r.client.Stream(t.Context(), resumable()))
		require.ErrorIs(t, err, llm.ErrCancelled)
		_, err = collect(other.Resume(t.Context(), "r1", 1))
		require.ErrorIs(t, err, llm.ErrCancelled, "it is how the answer ended")
		require.ErrorIs(t, other.Cancel("a b"), llm.ErrInvalidRequest)
	})
}

func TestWhatCannotBeResumed(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, client.WithTimeout(5*time.Second))
		_, err := collect(r.client.Resume(t.Context(), "r1", 1))
		require.ErrorIs(t, err, llm.ErrUnavailable)
		require.ErrorIs(t, err, nats.ErrNoResponders)
		r.work(t, model{fake.New()}, keeps(t))
		began := time.Now()
		_, err = collect(r.client.Resume(t.Context(), "nobody", 1))
		require.ErrorIs(t, err, llm.ErrUnknownRequest)
		require.Less(t, time.Since(began), time.Second)
		for id, from := range map[string]uint64{"a b": 1, "r1": 0} {
			_, err = collect(r.client.Resume(t.Context(), id, from))
			require.ErrorIs(t, err, llm.ErrInvalidRequest)
		}
	})
}

// A resumable request whose worker vanishes before any text is begun anew, and
// whoever watches goes along.
func TestWatchersFollowToTheNextWorker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, client.WithSilence(3*time.Second))
		store := new(bus.Config{Conn: natstest.Connect(t, r.srv)})
		keeps(t)(store)
		taken := make(chan *played, 1)
		lost := r.play(t, func(p *played) { taken <- p })
		var readers sync.WaitGroup
		follow := func(seq iter.Seq2[llm.Frame, error]) {
			readers.Go(func() {
				frames, err := collect(seq)
				require.NoError(t, err)
				require.Equal(t, "ab", text(frames))
			})
		}
		follow(r.client.Stream(t.Context(), resumable()))
		p := <-taken
		for _, f := range []llm.Frame{{Seq: 1, Type: llm.FramePing}, {Seq: 2, Attempt: 1, Type: llm.FrameStart}} {
			p.frame(f)
			wire, err := f.AppendJSON(nil)
			require.NoError(t, err)
			require.NoError(t, p.nc.Publish(subjects.Replay("", "r1"), wire))
		}
		lost.Close()
		synctest.Wait()
		r.work(t, model{fake.New(fake.Answer("a", "b"))}, keeps(t))
		follow(r.client.Resume(t.Context(), "r1", 1))
		readers.Wait()
	})
}
