package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/conformance"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// adapter makes a client under test of ours: the task in, the report out.
type adapter func(ctx context.Context, nc *nats.Conn, task conformance.Task) conformance.Report

// serve takes tasks until the last.
func (a adapter) serve(t *testing.T, nc *nats.Conn) {
	t.Helper()
	var running sync.WaitGroup
	done := make(chan struct{})
	_, err := nc.Subscribe(conformance.ControlSubject, func(msg *nats.Msg) {
		var task conformance.Task
		if err := json.Unmarshal(msg.Data, &task); err != nil || task.Do == conformance.DoEnd {
			close(done)
			return
		}
		running.Go(func() {
			report, _ := json.Marshal(a(t.Context(), nc, task))
			_ = msg.Respond(report)
		})
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		<-done
		running.Wait()
	})
}

// ours is the Go client of this repository.
func ours(ctx context.Context, nc *nats.Conn, task conformance.Task) conformance.Report {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(task.TimeoutMS)*time.Millisecond, llm.ErrDeadline)
	defer cancel()
	c, err := client.New(nc, client.WithSilence(time.Duration(max(1, task.SilenceMS))*time.Millisecond))
	if err != nil {
		return ended("", err)
	}
	req := &llm.Request{Feature: task.Feature, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(task.Prompt)}}}
	switch task.Do {
	case conformance.DoComplete:
		resp, err := c.Complete(ctx, req)
		if err != nil {
			return ended("", err)
		}
		return ended(resp.Content, nil)
	case conformance.DoStream:
		return streamed(ctx, c, req, task.CancelAfter)
	}
	return conformance.Report{Outcome: conformance.OutcomeUnsupported}
}

// streamed reads as a user of the client would.
func streamed(ctx context.Context, c *client.Client, req *llm.Request, cancelAfter int) conformance.Report {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var text strings.Builder
	deltas := 0
	for f, err := range c.Stream(ctx, req) {
		switch {
		case err != nil:
			return ended(text.String(), err)
		case f.Type == llm.FrameStart:
			text.Reset()
		case f.Type == llm.FrameDelta:
			text.WriteString(f.Text)
			if deltas++; deltas == cancelAfter {
				cancel(llm.ErrCancelled)
			}
		}
	}
	return ended(text.String(), nil)
}

// ended is what a user of the client learns.
func ended(text string, err error) conformance.Report {
	e, isError := errors.AsType[*llm.Error](err)
	switch {
	case err == nil:
		return conformance.Report{Outcome: conformance.OutcomeAnswer, Text: &text}
	case errors.Is(err, nats.ErrNoResponders):
		return conformance.Report{Outcome: conformance.OutcomeNoResponders}
	case isError && !errors.Is(err, stream.ErrSilent):
		return conformance.Report{Outcome: conformance.OutcomeError, Code: e.Code, Text: &text, RetryAfterMS: e.RetryAfterMS}
	}
	return conformance.Report{Outcome: conformance.OutcomeBroken, Text: &text}
}

func judgeClient(t *testing.T, a adapter) results {
	t.Helper()
	got := results{}
	natstest.Bubble(t, func(t *testing.T) {
		srv := natstest.Server(t)
		a.serve(t, natstest.Connect(t, srv))
		require.NoError(t, conformance.Client(t.Context(), conformance.ClientConfig{Conn: natstest.Connect(t, srv)}, got.tell))
	})
	return got
}

func TestOurClientConforms(t *testing.T) {
	got := judgeClient(t, ours)
	got.requirePassed(t, "the client has no stream_reply")
	require.Greater(t, len(got), 30)
}

// TestTheJudgeFindsABadClient judges one that answers without asking, one that
// asks for nothing in particular, and one that takes every message for text.
func TestTheJudgeFindsABadClient(t *testing.T) {
	text := "Hello"
	lazy := judgeClient(t, func(context.Context, *nats.Conn, conformance.Task) conformance.Report {
		return conformance.Report{Outcome: conformance.OutcomeAnswer, Text: &text}
	})
	require.NoError(t, lazy["complete: an answer"].Err)
	require.ErrorContains(t, lazy["complete: nobody there"].Err, `the client reported outcome "answer", a text of 5 bytes`)
	require.ErrorContains(t, lazy["stream: silence after text"].Err, `the client reported outcome "answer"`)

	rude := judgeClient(t, func(ctx context.Context, nc *nats.Conn, task conformance.Task) conformance.Report {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = nc.RequestWithContext(ctx, "llm.complete."+task.Feature, []byte(`{"question":"?"}`))
		return conformance.Report{Outcome: conformance.OutcomeAnswer, Text: &text}
	})
	require.ErrorContains(t, rude["complete: an answer"].Err, "request: / breaks")
}

func TestAClientThatDoesNotCancelIsFound(t *testing.T) {
	got := judgeClient(t, func(ctx context.Context, nc *nats.Conn, task conformance.Task) conformance.Report {
		_ = nc.PublishMsg(&nats.Msg{Subject: "llm.complete." + task.Feature, Reply: nc.NewInbox(), Data: []byte(`{"prompt":"hello","stream":true}`),
			Header: nats.Header{"Llm-Request-Id": {task.Feature}}})
		return conformance.Report{Outcome: conformance.OutcomeError, Code: llm.CodeCancelled}
	})
	require.ErrorContains(t, got["stream: cancel after the first text"].Err, "the client did not cancel its request")
}

func TestClientsAreJudgedWithoutWorkers(t *testing.T) {
	err := conformance.Client(t.Context(), conformance.ClientConfig{Conn: startWorker(t)}, nil)
	require.ErrorIs(t, err, conformance.ErrWorkers)
	natstest.Bubble(t, func(t *testing.T) {
		err := conformance.Client(t.Context(), conformance.ClientConfig{Conn: natstest.Connect(t, natstest.Server(t)), Start: time.Second}, nil)
		require.ErrorContains(t, err, "no client takes tasks on conformance.client within 1s")
	})
	require.ErrorContains(t, conformance.Client(t.Context(), conformance.ClientConfig{}, nil), "Conn must be set")
}
