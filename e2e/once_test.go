package e2e

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/once"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/stream"
	"github.com/llmbus/llmbus/subjects"
)

// outcomes are the ends of the requests that had one key.
type outcomes struct {
	mu   sync.Mutex
	byID map[string][]reply
	lost int // no end: the worker of the request was killed
}

func (o *outcomes) add(key string, r reply, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.lost++
		return
	}
	o.byID[key] = append(o.byID[key], r)
}

// askKeyed asks with a key and waits for the end as a caller in any language does:
// streamed to its inbox, or with one reply.
func askKeyed(ctx context.Context, nc *nats.Conn, feature, key string, streamed bool) (reply, error) {
	var r reply
	payload := fmt.Appendf(nil, `{"prompt":"question %s","idempotency_key":%q,"stream":%t}`, key, key, streamed)
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return r, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(subjects.Complete(feature), inbox, payload); err != nil {
		return r, err
	}
	if !streamed {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return r, err
		}
		resp, err := llm.DecodeReply(msg.Data)
		if err != nil {
			return r, err
		}
		r.Response = *resp
		return r, nil
	}
	var whole stream.Assembly
	for f, err := range stream.Read(ctx, sub.NextMsgWithContext, 30*time.Second) {
		if err != nil {
			return r, err
		}
		whole.Add(&f)
		if f.Type == llm.FrameEnd {
			whole.Complete(f.Response)
			r.Response = *f.Response
		}
	}
	return r, nil
}

var keys = natstest.Scale(1000, 200)

// duplicates sends every key twice or more, at once or after each other, half of
// them streamed, and calls amid for each that has begun.
func (f *fleet) duplicates(ctx context.Context, amid func(n int)) *outcomes {
	got := &outcomes{byID: map[string][]reply{}}
	var all sync.WaitGroup
	for n := range keys {
		for range 2 + n%2 {
			all.Go(func() {
				pass(time.Duration(rand.Int64N(int64(3 * time.Second))))
				key := fmt.Sprint("key-", n)
				r, err := askKeyed(ctx, f.caller, "f", key, rand.IntN(2) == 0)
				got.add(key, r, err)
			})
		}
		if amid != nil {
			all.Go(func() { amid(n) })
		}
	}
	all.Wait()
	return got
}

// wordyModel answers each question in its own words, within two seconds.
func wordyModel() *fake.Provider {
	return fake.Func(func(call int, _ *llm.Request) fake.Step {
		return fake.Step{Wait: time.Duration(call%5) * 200 * time.Millisecond, Pieces: []string{"answer ", "of call ", fmt.Sprint(call)}, Gap: 200 * time.Millisecond}
	})
}

// hand counts the calls of one worker, and those of them whose end was kept.
type hand struct{ begun, kept atomic.Int64 }

// maker is below once, keeper above it.
type (
	maker struct {
		llm.Completer
		*hand
	}
	keeper struct {
		llm.Completer
		*hand
	}
)

func (m maker) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	m.begun.Add(1)
	return m.Completer.Complete(ctx, req)
}

func (m maker) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	m.begun.Add(1)
	return m.Completer.Stream(ctx, req)
}

func (k keeper) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := k.Completer.Complete(ctx, req)
	k.saw(resp)
	return resp, err
}

func (k keeper) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		for f, err := range k.Completer.Stream(ctx, req) {
			k.saw(f.Response)
			if !yield(f, err) {
				return
			}
		}
	}
}

func (k keeper) saw(resp *llm.Response) {
	if resp != nil && !resp.Replayed {
		k.kept.Add(1)
	}
}

// keyedPlan has a hand for each worker that it starts.
func keyedPlan(model *fake.Provider) (plan, *[]*hand) {
	hands := new([]*hand)
	return plan{
		providers: []*fake.Provider{model}, slots: 4 * keys,
		feature: func(f *chain.Feature) { f.Targets[0].Timeout = 0 },
		once: func(c *once.Config) {
			h := new(hand)
			*hands = append(*hands, h)
			c.Next = maker{c.Next, h}
		},
		bus: func(c *bus.Config) { c.Completer = keeper{c.Completer, (*hands)[len(*hands)-1]} },
	}, hands
}

func keyedFleet(t *testing.T, model *fake.Provider) (*fleet, []*hand) {
	p, hands := keyedPlan(model)
	p.dial = inBubble(t).dial
	return startFleet(t, 4, p), *hands
}

func TestFleetMakesOneCallForEachKey(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		model := wordyModel()
		f, _ := keyedFleet(t, model)
		defer f.halt()
		got := f.duplicates(t.Context(), nil)
		require.Zero(t, got.lost)
		require.Len(t, got.byID, keys)
		for key, replies := range got.byID {
			originals := 0
			for _, r := range replies {
				require.Equal(t, replies[0].Content, r.Content, key)
				if !r.Replayed {
					originals++
				}
			}
			require.Equal(t, 1, originals, key)
		}
		require.Equal(t, keys, model.Count())
	})
}

func TestFleetMakesNoMoreCallsThanKilledWorkersHad(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		model := wordyModel()
		f, hands := keyedFleet(t, model)
		defer f.halt()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		killed := 0 // calls that were under way on workers that were cut off
		got := f.duplicates(ctx, func(n int) {
			if n == 0 || n == 1 {
				pass(time.Second + time.Duration(n)*800*time.Millisecond)
				kept := hands[n].kept.Load()
				f.workers[n].conn.Close()
				pass(10 * time.Millisecond)
				killed += int(hands[n].begun.Load() - kept)
			}
		})
		require.Positive(t, killed)
		require.Positive(t, got.lost)
		require.LessOrEqual(t, model.Count(), keys+killed)
		t.Logf("%d calls for %d keys, %d calls under way on killed workers, %d requests lost with them", model.Count(), keys, killed, got.lost)
		for key, replies := range got.byID {
			for _, r := range replies {
				require.Equal(t, replies[0].Content, r.Content, key)
			}
		}
	})
}

func TestProcessesMakeOneCallForEachKey(t *testing.T) {
	s := newSite(t)
	workers := s.start(t, 3)
	var all sync.WaitGroup
	got := &outcomes{byID: map[string][]reply{}}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for n := range 90 {
		all.Go(func() {
			key := fmt.Sprint("key-", n%30)
			r, err := askKeyed(ctx, s.caller, "slow", key, n%2 == 0)
			got.add(key, r, err)
		})
	}
	all.Wait()
	require.Zero(t, got.lost)
	require.Equal(t, 30, s.sim.Calls("sim-ok-t60-g20ms"))

	for n := range 12 { // and while a worker is killed
		all.Go(func() {
			key := fmt.Sprint("late-", n%4)
			r, err := askKeyed(ctx, s.caller, "slow", key, false)
			got.add(key, r, err)
		})
	}
	until(t, "four calls are under way", func() bool { return s.sim.Calls("sim-ok-t60-g20ms") == 34 })
	_ = workers[0].stop(t, syscall.SIGKILL)
	enough := time.AfterFunc(6*time.Second, cancel) // for what was lost with it
	defer enough.Stop()
	all.Wait()
	require.LessOrEqual(t, s.sim.Calls("sim-ok-t60-g20ms"), 34+4)
	for n := range 4 {
		replies := got.byID[fmt.Sprint("late-", n)]
		for _, r := range replies {
			require.Equal(t, replies[0].Content, r.Content)
		}
	}
}

// A job enters as a request does, so the two share a call.
func TestProcessesShareACallBetweenJobsAndRequests(t *testing.T) {
	s := newSite(t)
	s.start(t, 2)
	c, err := client.New(s.caller, client.WithTimeout(20*time.Second))
	require.NoError(t, err)
	question := func() *llm.Request {
		return &llm.Request{Feature: "slow", IdempotencyKey: "k", Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hello")}}}
	}
	var submitted []*llm.Job
	for range 2 {
		job, err := c.Submit(t.Context(), question())
		require.NoError(t, err)
		submitted = append(submitted, job)
	}
	asked, err := c.Complete(t.Context(), question())
	require.NoError(t, err)
	for _, job := range submitted {
		got, err := c.Result(t.Context(), job)
		require.NoError(t, err)
		require.Equal(t, asked.Content, got.Content)
	}
	require.Equal(t, 1, s.sim.Calls("sim-ok-t60-g20ms"))
}
