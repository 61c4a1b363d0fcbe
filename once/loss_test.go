package once_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/stream"
)

func TestWhoWaitsTakesOverFromADeadWorker(t *testing.T) {
	for name, when := range map[string]func(f *fleet) (before, after int){
		"who had joined": func(*fleet) (int, int) { return 4, 0 },
		"who comes late": func(*fleet) (int, int) { return 0, 4 },
		"both":           func(*fleet) (int, int) { return 2, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, f *fleet) {
				f.Play(fake.Step{Wait: time.Minute, Pieces: []string{"lost"}}, fake.Step{Wait: time.Minute, Pieces: []string{"x"}})
				first := f.workers[0].ask(t.Context(), keyed("1", streamed))
				settled()
				before, after := when(f)
				var joined []<-chan result
				ask := func(n int) {
					for i := range n {
						joined = append(joined, f.workers[1+i%2].ask(t.Context(), keyed("2")), f.workers[2-i%2].ask(t.Context(), keyed("3", streamed)))
					}
					settled()
				}
				ask(before)
				f.workers[0].conn.Close()
				began := time.Now()
				ask(after)
				for _, r := range joined {
					got := <-r
					require.NoError(t, got.err)
					require.Equal(t, "x", got.Content)
					if got.types != nil {
						require.Equal(t, "x", got.text)
					}
				}
				require.Equal(t, 2, f.Count())
				require.Less(t, time.Since(began), time.Minute+2*patience)
				got := <-first // nobody hears it, and it must not replace the other
				require.Equal(t, "lost", got.Content)
				require.Equal(t, "x", (<-f.workers[1].ask(t.Context(), keyed("4"))).Content)
			})
		})
	}
}

func TestAReaderIsNeverShownTheTextOfTwoCalls(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Step{Pieces: []string{"lo", "st"}, Gap: time.Minute}, fake.Answer("x"))
		first := f.workers[0].ask(t.Context(), keyed("1", streamed))
		settled()
		reader := f.workers[1].ask(t.Context(), keyed("2", streamed))
		settled()
		f.workers[0].conn.Close()
		got := <-reader
		require.ErrorIs(t, got.err, llm.ErrInterrupted)
		require.Equal(t, "lo", got.text)
		again := <-f.workers[1].ask(t.Context(), keyed("3", streamed))
		require.NoError(t, again.err, "the key is free at once")
		require.Equal(t, "x", again.text)
		require.False(t, again.Replayed)
		<-first
	})
}

// A reader whose frames were lost gets them once more, from where it was.
func TestALostFrameIsFetchedAgain(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Step{Pieces: []string{"ab", "cd", "ef"}, Gap: time.Minute})
		asked, err := f.workers[1].conn.SubscribeSync("llm.follow.>")
		require.NoError(t, err)
		first := f.workers[0].ask(t.Context(), keyed("1", streamed))
		settled()
		reader := f.workers[1].ask(t.Context(), keyed("2", streamed))
		settled()
		ask, err := asked.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		data, err := json.Marshal(llm.Frame{Seq: 99, Attempt: 1, Type: llm.FrameDelta, Text: "gap"})
		require.NoError(t, err)
		require.NoError(t, f.workers[1].conn.Publish(ask.Reply, data))
		got := <-reader
		require.NoError(t, got.err)
		require.Equal(t, "abcdef", got.text)
		require.True(t, got.Replayed)
		_, err = asked.NextMsgWithContext(t.Context())
		require.NoError(t, err, "it asked again")
		require.NoError(t, (<-first).err)
		require.Equal(t, 1, f.Count())
	})
}

// A last word that was lost is asked for before anybody calls anew.
func TestSilenceIsAskedAbout(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		owner, asked := natstest.Connect(t, f.server), 0
		_, err := owner.Subscribe("llm.follow.owner", func(msg *nats.Msg) {
			w := stream.NewWriter(owner, stream.Target{Subject: msg.Reply})
			_ = w.Write(llm.Frame{Type: llm.FrameStart, Attempt: 1})
			if asked++; asked == 2 {
				_ = w.Write(llm.Frame{Type: llm.FrameEnd, Attempt: 1, Response: &llm.Response{Content: "x", ServedBy: llm.ServedByModel}})
			}
		})
		require.NoError(t, err)
		record := fmt.Sprintf(`{"state":"running","call":"c","worker":"owner","body":%q}`, keyed("1").Digest())
		_, err = f.requests.Put(t.Context(), "acme.f.order=2017", []byte(record))
		require.NoError(t, err)
		got := <-f.workers[0].ask(t.Context(), keyed("1"))
		require.NoError(t, got.err)
		require.Equal(t, "x", got.Content)
		require.Zero(t, f.Count())
	})
}

// Nobody takes over because of his own loss of the connection, nor while all
// are without a server for a moment.
func TestARestartOfNATSTakesNoCallAway(t *testing.T) {
	srv := natstest.ListenServer(t)
	f := start(t, 2, func() *nats.Conn { return srv.Dial(nats.ReconnectWait(50 * time.Millisecond)) })
	defer f.halt()
	gate := make(chan struct{})
	f.Play(fake.Step{Until: gate, Pieces: []string{"x"}})
	first := f.workers[0].ask(t.Context(), keyed("1"))
	require.Eventually(t, func() bool { return f.Count() == 1 }, 5*time.Second, time.Millisecond)
	joined := f.workers[1].ask(t.Context(), keyed("2"))
	srv.Stop()
	srv.Restart()
	require.Eventually(t, func() bool { return f.workers[0].conn.IsConnected() && f.workers[1].conn.IsConnected() }, 10*time.Second, time.Millisecond)
	close(gate)
	require.NoError(t, (<-first).err)
	got := <-joined
	require.NoError(t, got.err)
	require.Equal(t, "x", got.Content)
	require.Equal(t, 1, f.Count())
}
