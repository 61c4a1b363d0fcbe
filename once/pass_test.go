package once_test

import (
	"context"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/once"
	"github.com/llmbus/llmbus/provider/fake"
)

func dialer(t *testing.T, srv *server.Server) func() *nats.Conn {
	return func() *nats.Conn { return natstest.Connect(t, srv) }
}

func TestWithoutAKeyNothingIsWrittenOrAllocated(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		for _, change := range []func(*llm.Request){func(*llm.Request) {}, streamed} {
			for range 3 {
				got := <-f.workers[0].ask(t.Context(), keyed("1", change, func(r *llm.Request) { r.IdempotencyKey = "" }))
				require.NoError(t, got.err)
				require.False(t, got.Replayed)
			}
		}
		require.Equal(t, 6, f.Count())
		require.Zero(t, f.keys(t))
	})
	nothing, err := once.New(once.Config{Conn: new(nats.Conn), Requests: new(kv.Bucket), Next: constant{}, Worker: "w"})
	require.NoError(t, err)
	req, ctx := new(llm.Request), t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = nothing.Complete(ctx, req) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = nothing.Stream(ctx, req) }))
}

// constant is the cheapest Completer.
type constant struct{}

func (constant) Complete(context.Context, *llm.Request) (*llm.Response, error)    { return nil, nil }
func (constant) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] { return nil }

func TestWhatIsSwitchedOffIsNotReplayed(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		dial, switches := dialer(t, natstest.Server(t)), new(flags)
		f := start(t, 1, dial, func(c *once.Config) { c.Switches = switches })
		defer f.halt()
		switches.FlagSet = kv.ParseFlags(nil)
		require.False(t, (<-f.workers[0].ask(t.Context(), keyed("1"))).Replayed)
		require.True(t, (<-f.workers[0].ask(t.Context(), keyed("2"))).Replayed)
		switches.FlagSet = kv.ParseFlags(map[string]string{"feature.f": "off"})
		require.False(t, (<-f.workers[0].ask(t.Context(), keyed("3"))).Replayed, "the chain says what is off")
	})
}

type flags struct{ *kv.FlagSet }

func (f flags) Current(context.Context) (*kv.FlagSet, bool) { return f.FlagSet, false }

func TestWithoutKVAKeyIsRefused(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		require.NoError(t, f.server.DisableJetStream())
		began := time.Now()
		got := <-f.workers[0].ask(t.Context(), keyed("1"))
		require.ErrorIs(t, got.err, llm.ErrUnavailable)
		require.LessOrEqual(t, time.Since(began), 8*time.Second)
		require.Zero(t, f.Count())
	})
}

func TestAnAnswerIsGivenAtOnceAndKeptLater(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *fleet) {
		f.Play(fake.Step{Wait: time.Minute, Pieces: []string{"x"}})
		first := f.workers[0].ask(t.Context(), keyed("1"))
		settled()
		settings := f.server.JetStreamConfig()
		settings.StoreDir = filepath.Dir(settings.StoreDir) // to which the server adds what it added before
		require.NoError(t, f.server.DisableJetStream())
		got := <-first
		require.NoError(t, got.err)
		require.Equal(t, "x", got.Content)
		require.NoError(t, f.server.EnableJetStream(settings))
		again := <-f.workers[1].ask(t.Context(), keyed("2"))
		require.NoError(t, again.err)
		require.True(t, again.Replayed)
		natstest.Advance(time.Second)
		f.workers[0].conn.Close()
		require.True(t, (<-f.workers[1].ask(t.Context(), keyed("3"))).Replayed, "it is in the bucket")
		require.Equal(t, 1, f.Count())
	})
}

func TestARecordOfAnotherHand(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *fleet) {
		_, err := f.requests.Put(t.Context(), "acme.f.order=2017", []byte("?"))
		require.NoError(t, err)
		require.ErrorIs(t, (<-f.workers[0].ask(t.Context(), keyed("1"))).err, llm.ErrInternal)
		require.NoError(t, f.requests.Delete(t.Context(), "acme.f.order=2017", 0))
		require.NoError(t, (<-f.workers[0].ask(t.Context(), keyed("1"))).err, "an operator can free a key")
	})
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]once.Config{
		"Next":     {Conn: new(nats.Conn), Requests: new(kv.Bucket), Worker: "w"},
		"Worker":   {Conn: new(nats.Conn), Requests: new(kv.Bucket), Next: constant{}},
		"Patience": {Conn: new(nats.Conn), Requests: new(kv.Bucket), Next: constant{}, Worker: "w", Patience: -1},
	} {
		_, err := once.New(c)
		require.ErrorContains(t, err, name)
	}
}
