package replay_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/replay"
	"github.com/llmbus/llmbus/subjects"
)

func open(t testing.TB, nc *nats.Conn, o replay.Options) *replay.Store {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	store, err := replay.Open(t.Context(), js, o)
	require.NoError(t, err)
	return store
}

// config is what the server says of the stream.
func config(t testing.TB, nc *nats.Conn) jetstream.StreamConfig {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), replay.StreamName)
	require.NoError(t, err)
	return stream.CachedInfo().Config
}

func publish(t testing.TB, nc *nats.Conn, id string, n int) (sent []string) {
	t.Helper()
	for i := range n {
		sent = append(sent, fmt.Sprint(id, " ", i))
		require.NoError(t, nc.Publish(subjects.Replay("", id), []byte(sent[i])))
	}
	require.NoError(t, nc.FlushWithContext(within(t)))
	return sent
}

func read(t testing.TB, s *replay.Store, id string) (list []string) {
	t.Helper()
	for data, err := range s.Read(within(t), subjects.Replay("", id)) {
		require.NoError(t, err)
		list = append(list, string(data))
	}
	return list
}

func TestWhatWasPublishedIsRead(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		s := open(t, nc, replay.Options{})
		subscribed := nc.NumSubscriptions()
		for _, n := range []int{1, 511, 512, 513, 1600} { // around the size of one reading
			id := fmt.Sprint("r", n)
			sent := publish(t, nc, id, n)
			publish(t, nc, "other", 3)
			synctest.Wait()
			require.Equal(t, sent, read(t, s, id))
		}
		require.Empty(t, read(t, s, "nobody"))
		for range s.Read(t.Context(), subjects.Replay("", "r513")) {
			break
		}
		require.Equal(t, subscribed, nc.NumSubscriptions(), "nothing is left of a reading")
	})
}

func TestTheOldestGoesFirst(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		s := open(t, nc, replay.Options{MaxAge: time.Minute, MaxBytes: 4096})
		sent := publish(t, nc, "a", 200)
		synctest.Wait()
		kept := read(t, s, "a")
		require.NotEmpty(t, kept)
		require.Less(t, len(kept), 200)
		require.Equal(t, sent[200-len(kept):], kept)
		natstest.Advance(2 * time.Minute)
		require.Empty(t, read(t, s, "a"))
	})
}

func TestOpenBringsLimitsUpToDate(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		open(t, nc, replay.Options{})
		first := config(t, nc)
		require.Equal(t, 5*time.Minute, first.MaxAge)
		require.Equal(t, jetstream.MemoryStorage, first.Storage)
		require.Equal(t, jetstream.DiscardOld, first.Discard)
		require.Equal(t, []string{"llm.replay.>"}, first.Subjects)
		require.Equal(t, 1, first.Replicas, "no more than there are servers")
		open(t, nc, replay.Options{MaxAge: time.Minute, MaxBytes: 1 << 20})
		second := config(t, nc)
		require.Equal(t, time.Minute, second.MaxAge)
		require.EqualValues(t, 1<<20, second.MaxBytes)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	nc := natstest.Connect(t, natstest.Server(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for _, bad := range []replay.Options{{MaxAge: -1}, {MaxAge: time.Millisecond}, {MaxBytes: -1}, {Replicas: -1}, {Replicas: 6}} {
		_, err := replay.Open(t.Context(), js, bad)
		require.Error(t, err)
	}
}
