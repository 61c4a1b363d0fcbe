package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

// script is a Next that gives the payloads in order and then waits.
func script(payloads ...string) stream.Next {
	return func(ctx context.Context) (*nats.Msg, error) {
		if len(payloads) == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		msg := &nats.Msg{Data: []byte(payloads[0])}
		payloads = payloads[1:]
		return msg, nil
	}
}

const (
	first = `{"seq":1,"attempt":1,"type":"delta","text":"a"}`
	third = `{"seq":3,"attempt":1,"type":"delta","text":"c"}`
	last  = `{"seq":2,"attempt":1,"type":"end","response":{"id":"1","content":"","served_by":"model"}}`
)

func TestReadEndsWithTheTruth(t *testing.T) {
	for name, tc := range map[string]struct {
		payloads []string
		frames   int
		check    func(t *testing.T, err error)
	}{
		"end":           {[]string{first, last}, 2, func(t *testing.T, err error) { require.NoError(t, err) }},
		"gap":           {[]string{first, third}, 1, gap(2, 3)},
		"repeated":      {[]string{first, first}, 1, gap(2, 1)},
		"late":          {[]string{third}, 0, gap(1, 3)},
		"closed early":  {[]string{first, ""}, 1, is(stream.ErrTruncated)},
		"silent":        {[]string{first}, 1, is(stream.ErrSilent)},
		"never began":   {nil, 0, is(stream.ErrSilent)},
		"error frame":   {[]string{first, `{"seq":2,"type":"error","error":{"code":"interrupted","message":"x"}}`}, 1, is(llm.ErrInterrupted)},
		"refused":       {[]string{`{"error":{"code":"busy","message":"full"}}`}, 0, is(llm.ErrBusy)},
		"foreign":       {[]string{"hello"}, 0, func(t *testing.T, err error) { require.ErrorContains(t, err, "not a frame") }},
		"unknown frame": {[]string{`{"seq":1,"type":"thought"}`, last}, 2, func(t *testing.T, err error) { require.NoError(t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				frames := 0
				var failed error
				for _, err := range stream.Read(t.Context(), script(tc.payloads...), 30*time.Second) {
					require.NoError(t, failed, "an error is the last thing yielded")
					if failed = err; err == nil {
						frames++
					}
				}
				require.Equal(t, tc.frames, frames)
				tc.check(t, failed)
			})
		})
	}
}

func is(want error) func(*testing.T, error) {
	return func(t *testing.T, err error) { require.ErrorIs(t, err, want) }
}

func gap(want, got uint64) func(*testing.T, error) {
	return func(t *testing.T, err error) { require.Equal(t, &stream.GapError{Want: want, Got: got}, err) }
}

func TestReadEndsWithItsContext(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, err := range stream.Read(ctx, script(first), 0) {
		cancel(gone)
		if err != nil {
			require.Equal(t, gone, err)
		}
	}
}

func TestDroppedMessagesAreAGap(t *testing.T) {
	w := connect(t)
	require.NoError(t, w.sub.SetPendingLimits(2, -1))
	w.caller.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	for range 5 {
		require.NoError(t, out.Write(delta("a")))
	}
	flush(t, w.worker)
	flush(t, w.caller)
	_, err := w.read(t)
	lost, ok := errors.AsType[*stream.GapError](err)
	require.True(t, ok, err)
	require.Zero(t, lost.Got)
}

func TestClosedConnectionIsTruncation(t *testing.T) {
	w := connect(t)
	out := stream.NewWriter(w.worker, stream.Target{Subject: subject})
	require.NoError(t, out.Write(delta("a")))
	frames := 0
	var failed error
	for _, err := range stream.Read(t.Context(), w.sub.NextMsgWithContext, time.Minute) {
		failed = err
		if err == nil {
			frames++
			w.caller.Close()
		}
	}
	require.Equal(t, 1, frames)
	require.ErrorIs(t, failed, stream.ErrTruncated)
}

func TestNobodyToAnswerIsNoResponders(t *testing.T) {
	w := connect(t)
	inbox, err := w.caller.SubscribeSync(w.caller.NewInbox())
	require.NoError(t, err)
	require.NoError(t, w.caller.PublishRequest("llm.complete.none", inbox.Subject, []byte("{}")))
	for _, err := range stream.Read(t.Context(), inbox.NextMsgWithContext, time.Minute) {
		require.ErrorIs(t, err, nats.ErrNoResponders)
	}
}

// Until something of the answer was shown, another worker may begin anew.
func TestNumbersMayBeginAnewBeforeTheAnswer(t *testing.T) {
	const ping, start, text, end = `{"seq":1,"type":"ping"}`, `{"seq":2,"type":"start"}`, `{"seq":3,"type":"delta","text":"a"}`, `{"seq":4,"type":"end","response":{"served_by":"model"}}`
	read := func(want uint64, payloads ...string) (n int, err error) {
		for _, e := range stream.ReadFrom(t.Context(), script(payloads...), want, 0) {
			if n, err = n+1, e; err != nil {
				return n - 1, err
			}
		}
		return n, err
	}
	n, err := read(1, ping, start, ping, start, text, end)
	require.NoError(t, err)
	require.Equal(t, 6, n)
	n, err = read(3, text, end)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	for _, lost := range []error{second(read(1, ping, start, text, ping)), second(read(1, ping, text)), second(read(3, ping))} {
		_, ok := errors.AsType[*stream.GapError](lost)
		require.True(t, ok, "%v", lost)
	}
}

func second[T any](_ T, err error) error { return err }

func TestToolCallsAreAssembledByIndex(t *testing.T) {
	var a stream.Assembly
	for _, f := range []llm.Frame{
		{Index: 1, ID: "b", Name: "g"}, {Index: 0, ID: "a", Name: "f", Arguments: "{"}, {Index: 1, Arguments: "{}"},
		{Index: 0, ID: "a", Arguments: "}"}, {Index: 7, ID: "a", Name: "h", Arguments: "{}"},
	} {
		f.Type = llm.FrameToolCall
		a.Add(&f)
	}
	require.Equal(t, []llm.ToolCall{{ID: "b", Name: "g", Arguments: "{}"}, {ID: "a", Name: "f", Arguments: "{}"}, {ID: "a", Name: "h", Arguments: "{}"}}, a.Calls())
	stale := llm.Frame{Type: llm.FrameDelta, Text: "x", Attempt: -1}
	a.Add(&stale)
	require.Empty(t, a.Text())
}

func BenchmarkRead(b *testing.B) {
	payload := []byte(`{"seq":1,"attempt":1,"type":"delta","text":" a token"}`)
	end := []byte(last)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		next := func(context.Context) (*nats.Msg, error) {
			if n++; n == 1 {
				return &nats.Msg{Data: payload}, nil
			}
			return &nats.Msg{Data: end}, nil
		}
		for _, err := range stream.Read(b.Context(), next, time.Minute) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
