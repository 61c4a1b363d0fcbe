package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// A worker that vanishes is played by one that takes the request and then says
// nothing, or nothing more.
func TestAVanishedWorkerIsReplaced(t *testing.T) {
	start := llm.Frame{Seq: 1, Attempt: 2, Type: llm.FrameStart}
	ping := llm.Frame{Seq: 2, Attempt: 2, Type: llm.FramePing}
	for name, vanish := range map[string]func(p *played){
		"at once":         func(*played) {},
		"after its start": func(p *played) { p.frame(start); p.frame(ping) },
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := newRig(t, client.WithSilence(3*time.Second))
				var ids []string
				r.play(t, func(p *played) {
					if ids = append(ids, p.msg.Header.Get(subjects.HeaderRequestID)); len(ids) == 1 {
						vanish(p)
						return
					}
					p.delta(1, "a")
					p.end(2)
				})
				var whole stream.Assembly
				began := time.Now()
				frames, err := collect(r.client.Stream(t.Context(), ask()))
				require.NoError(t, err)
				for _, f := range frames {
					whole.Add(&f)
				}
				require.Equal(t, "a", whole.Text(), "a reader takes the second worker's frames for the newer ones")
				require.Equal(t, "a", frames[len(frames)-1].Response.Content)
				require.Equal(t, []string{ids[0], ids[0]}, ids, "it is one request")
				require.Less(t, time.Since(began), 4*time.Second)
			})
		})
	}
}

func TestAVanishedWorkerOfAWholeAnswerIsReplaced(t *testing.T) {
	greets := func(p *played) { p.frame(llm.Frame{Seq: 1, Type: llm.FramePing}) }
	for name, workers := range map[string][]func(*played){
		"after a sign of life": {greets},
		"at once":              {func(p *played) { greets(p); p.reply("before") }, func(*played) {}},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := newRig(t, client.WithSilence(3*time.Second))
				var pings, ids []string
				r.play(t, func(p *played) {
					pings = append(pings, p.msg.Header.Get(subjects.HeaderPingMS))
					ids = append(ids, p.msg.Header.Get(subjects.HeaderRequestID))
					if len(ids) <= len(workers) {
						workers[len(ids)-1](p)
						return
					}
					p.reply("a")
				})
				for range len(workers) - 1 {
					_, err := r.client.Complete(t.Context(), ask())
					require.NoError(t, err)
				}
				began := time.Now()
				resp, err := r.client.Complete(t.Context(), ask())
				require.NoError(t, err)
				require.Equal(t, "a", resp.Content)
				require.Equal(t, ids[len(ids)-1], ids[len(ids)-2])
				require.Equal(t, "1000", pings[0])
				require.Less(t, time.Since(began), 4*time.Second)
			})
		})
	}
}

// A client may not be allowed to listen, and silence then means nothing.
func TestSilenceThatWasNeverBrokenIsNoProof(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		calls := 0
		r := newRig(t)
		r.play(t, func(p *played) {
			calls++
			<-time.After(time.Minute)
			p.reply("a")
		})
		_, err := r.client.Complete(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, 1, calls)
	})
}

func TestASlowModelIsNoVanishedWorker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Step{Wait: time.Minute, Pieces: []string{"a"}}, fake.Step{Wait: time.Minute, Pieces: []string{"a"}})
		r := newRig(t, client.WithSilence(500*time.Millisecond))
		r.work(t, model{p})
		resp, err := r.client.Complete(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, "a", resp.Content)
		frames, err := collect(r.client.Stream(t.Context(), ask()))
		require.NoError(t, err)
		require.Equal(t, "a", text(frames))
		require.Len(t, p.Calls(), 2)
	})
}

func TestAnAnswerThatWasSeenIsNotAskedForAgain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		for _, seen := range []llm.Frame{
			{Seq: 1, Attempt: 1, Type: llm.FrameDelta, Text: "a"},
			{Seq: 1, Attempt: 1, Type: llm.FrameToolCall, ID: "1", Name: "f"},
		} {
			calls := 0
			r := newRig(t)
			r.play(t, func(p *played) { calls++; p.frame(seen) })
			_, err := collect(r.client.Stream(t.Context(), ask()))
			require.ErrorIs(t, err, llm.ErrInterrupted)
			synctest.Wait()
			require.Equal(t, 1, calls)
		}
	})
}

func TestRedispatchIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		opts  []client.Option
		calls int
		took  time.Duration // about
	}{
		"by default":           {nil, 3, 30 * time.Second},
		"by the caller":        {[]client.Option{client.WithRedispatch(0)}, 1, 10 * time.Second},
		"by the caller's time": {[]client.Option{client.WithTimeout(15 * time.Second)}, 2, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				calls := 0
				r := newRig(t, tc.opts...)
				r.play(t, func(p *played) { calls++; p.frame(llm.Frame{Seq: 1, Type: llm.FramePing}) })
				began := time.Now()
				_, err := r.client.Complete(t.Context(), ask())
				require.Error(t, err)
				synctest.Wait()
				require.Equal(t, tc.calls, calls)
				require.InDelta(t, tc.took, time.Since(began), float64(time.Second))
				_, err = collect(r.client.Stream(t.Context(), ask()))
				require.Error(t, err)
				synctest.Wait()
				require.Equal(t, 2*tc.calls, calls)
			})
		})
	}
}

// The lost worker comes back while the next one answers, and answers too.
func TestAWorkerThatComesBackDoesNotInterfere(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		var first *played
		r.play(t, func(p *played) {
			if first == nil {
				first = p
				return
			}
			first.refuse(llm.CodeCancelled, 0)
			first.frame(llm.Frame{Seq: 9, Attempt: 1, Type: llm.FrameDelta, Text: "x"})
			p.delta(1, "a")
			p.end(2)
			p.reply("a")
		})
		frames, err := collect(r.client.Stream(t.Context(), ask()))
		require.NoError(t, err)
		require.Equal(t, "a", text(frames))
	})
}
