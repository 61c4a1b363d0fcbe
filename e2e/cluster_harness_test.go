package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// meshFleet is three servers with a worker on each. The operator is on the
// server that no test takes away.
type meshFleet struct {
	*fleet
	*natstest.Mesh
	breakers jetstream.KeyValue
	flags    jetstream.KeyValue
	lame     []chan struct{} // of the caller, then of the workers: a token makes that worker go to another server
}

const (
	flagsStream    = "KV_" + kv.FlagsBucket
	breakersStream = "KV_" + kv.BreakersBucket
	safe           = 1 // the server that stays
)

func startMeshFleet(t testing.TB, p plan) *meshFleet {
	t.Helper()
	m := &meshFleet{Mesh: natstest.NewMesh(t, 3)}
	places := []int{safe, 0, 1, 2} // of the caller, then of the workers
	p.dial = func() *nats.Conn {
		at := places[0]
		places = places[1:]
		lame := make(chan struct{}, 1)
		m.lame = append(m.lame, lame)
		return m.Dial(at, quiet, nats.LameDuckModeHandler(func(*nats.Conn) { lame <- struct{}{} }))
	}
	p.bus = func(c *bus.Config) { c.LameDuck = m.lame[len(m.lame)-1] }
	p.reread = 500 * time.Millisecond
	m.fleet = startFleet(t, 3, p)
	js, err := jetstream.New(m.caller)
	require.NoError(t, err)
	m.breakers, err = js.KeyValue(t.Context(), kv.BreakersBucket)
	require.NoError(t, err)
	m.flags, err = js.KeyValue(t.Context(), kv.FlagsBucket)
	require.NoError(t, err)
	return m
}

// quiet is for connections whose servers are expected to fail.
func quiet(o *nats.Options) error {
	o.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {}
	return nil
}

// degraded reports whether a worker decides by itself.
func (w *worker) degraded(ctx context.Context) bool {
	_, stale := w.flags.Current(ctx)
	return stale || w.breakers.Degraded()
}

// known flips a flag that switches nothing and waits until every worker has it.
func (m *meshFleet) known(t testing.TB, news string) {
	t.Helper()
	m.write(t, func(ctx context.Context) error {
		_, err := m.flags.PutString(ctx, "provider.z", "off "+news)
		return err
	})
	for _, w := range m.workers {
		until(t, "every mirror is right", func() bool {
			flags, stale := w.flags.Current(t.Context())
			flag, _ := flags.Get("provider.z")
			return flag.Reason == news && !stale && !w.breakers.Degraded()
		})
	}
}

// write tries until the bucket takes it: its leader may just be changing.
func (m *meshFleet) write(t testing.TB, do func(context.Context) error) {
	t.Helper()
	until(t, "the bucket can be written", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return do(ctx) == nil
	})
}

// The deadline of every request of the traffic, and how much later its end may
// come back to the caller on a busy machine.
const (
	deadline = 2 * time.Second
	slack    = 500 * time.Millisecond
)

// traffic asks from every server of a mesh, with the Go client and with plain
// NATS requests, until end. What each request came to is kept.
type traffic struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	done []fate
}

// fate is how one request ended at its caller.
type fate struct {
	at         int // the server that the caller hangs on
	raw        bool
	begun, end time.Time
	degraded   bool
	err        error // nil for an answer; an *llm.Error, or what the NATS client says
}

func (m *meshFleet) traffic(t testing.TB) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tr := &traffic{stop: cancel}
	for at := range 3 {
		c, err := client.New(m.Dial(at, quiet), client.WithTimeout(deadline), client.WithSilence(deadline))
		require.NoError(t, err)
		raw := m.Dial(at, quiet)
		for range 3 {
			tr.repeat(ctx, fate{at: at}, func() (bool, error) { return completes(ctx, c) })
			tr.repeat(ctx, fate{at: at}, func() (bool, error) { return streams(ctx, c) })
			tr.repeat(ctx, fate{at: at, raw: true}, func() (bool, error) { return plain(ctx, raw) })
		}
	}
	return tr
}

// repeat asks again and again, at most every 20 ms.
func (tr *traffic) repeat(ctx context.Context, f fate, ask func() (degraded bool, err error)) {
	tr.wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			f.begun = time.Now()
			f.degraded, f.err = ask()
			if f.end = time.Now(); ctx.Err() != nil {
				return // cut short by the end of the test
			}
			tr.mu.Lock()
			tr.done = append(tr.done, f)
			tr.mu.Unlock()
		}
	})
}

func completes(ctx context.Context, c *client.Client) (bool, error) {
	resp, err := c.Complete(ctx, greeting())
	return resp != nil && resp.Degraded, err
}

func streams(ctx context.Context, c *client.Client) (degraded bool, err error) {
	var last llm.Frame
	for last, err = range c.Stream(ctx, greeting()) {
	}
	if err == nil && last.Type != llm.FrameEnd {
		err = errors.New("a stream without an end")
	}
	return last.Response != nil && last.Response.Degraded, err
}

func greeting() *llm.Request {
	return &llm.Request{Feature: "f", Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{{Type: llm.PartText, Text: "hello"}}}}}
}

func plain(ctx context.Context, nc *nats.Conn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	got, err := ask(ctx, nc, hello)
	if err == nil && got.Error != nil {
		err = got.Error
	}
	return got.Degraded, err
}

func (tr *traffic) end() {
	tr.stop()
	tr.wg.Wait()
}

// count is how many requests have ended so that want holds.
func (tr *traffic) count(want func(fate) bool) (n int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, f := range tr.done {
		if want(f) {
			n++
		}
	}
	return n
}

// answered waits until n more requests from a server are answered.
func (tr *traffic) answered(t testing.TB, at, n int) {
	t.Helper()
	good := func(f fate) bool { return f.at == at && f.err == nil }
	enough := tr.count(good) + n
	until(t, fmt.Sprintf("callers on n%d are served", at), func() bool { return tr.count(good) >= enough })
}

// lost reports whether the caller was left to its own clock.
func (f fate) lost() bool {
	return errors.Is(f.err, context.DeadlineExceeded) || errors.Is(f.err, llm.ErrDeadline) || errors.Is(f.err, llm.ErrCancelled)
}

// clear reports whether the caller was told what became of its request: by a
// worker, by a server that found no worker, or by its own NATS client, which
// knows when the connection breaks that the answer was to come by.
func (f fate) clear() bool {
	_, typed := errors.AsType[*llm.Error](f.err)
	return f.err == nil || typed || errors.Is(f.err, nats.ErrNoResponders) || errors.Is(f.err, nats.ErrDisconnected)
}

// within reports whether the request was under way at one of the instants.
func (f fate) within(instants []time.Time) bool {
	return slices.ContainsFunc(instants, func(at time.Time) bool { return !at.Before(f.begun) && !at.After(f.end) })
}
