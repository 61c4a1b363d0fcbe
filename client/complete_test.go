package client_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

func TestCompleteAsksAWorker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Answer("hello"))
		r := newRig(t, client.WithTenantHeader("acme"))
		r.work(t, model{p}, func(c *bus.Config) { c.TenantHeader = true })
		req := ask()
		req.Class, req.TraceParent, req.Stream = llm.ClassBackground, "00-x", true
		resp, err := r.client.Complete(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, "hello", resp.Content)
		require.NotEmpty(t, resp.ID)
		require.Empty(t, req.ID, "the request is not modified")

		got := p.Calls()[0]
		require.False(t, got.Stream)
		require.Equal(t, []string{"f", "acme", "00-x", "background"}, []string{got.Request.Feature, got.Request.Tenant, got.Request.TraceParent, string(got.Request.Class)})
	})
}

func TestErrorsAreTheWorkers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.work(t, model{fake.New(fake.FailsWith(llm.OutcomeConnect))})
		_, err := r.client.Complete(t.Context(), ask())
		require.Equal(t, &llm.Error{Code: llm.CodeUnavailable, Message: "connect"}, err)
	})
}

func TestTheDeadlineTravels(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline time.Duration // 0 is none
		want     int
	}{
		"long":  {10 * time.Second, 9900},
		"short": {500 * time.Millisecond, 450},
		"none":  {0, 299900},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.play(t, func(p *played) { p.reply(p.msg.Header.Get(subjects.HeaderTimeoutMS)) })
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				resp, err := r.client.Complete(ctx, ask())
				require.NoError(t, err)
				require.Equal(t, strconv.Itoa(tc.want), resp.Content)
			})
		})
	}
}

func TestTheWorkersAccountOfADeadlineArrives(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.work(t, model{fake.New(fake.Hangs())})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.client.Complete(ctx, ask())
		require.ErrorIs(t, err, llm.ErrDeadline)
		require.NoError(t, ctx.Err())
	})
}

func TestCancelReachesTheModel(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := newRig(t)
		r.work(t, model{p})
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		_, err := r.client.Complete(ctx, ask())
		require.ErrorIs(t, err, gone)
		synctest.Wait()
		require.Zero(t, p.Running())
		require.ErrorIs(t, p.Calls()[0].Cause, llm.ErrCancelled)
	})
}

func TestRefusalsAreTriedAgain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		var ids []string
		began := time.Now()
		time.AfterFunc(3*time.Second, func() { // until then nobody listens
			r.play(t, func(p *played) {
				ids = append(ids, p.msg.Header.Get(subjects.HeaderRequestID))
				if len(ids) < 3 { // long after the prompt tries
					p.refuse(llm.CodeBusy, 5000)
					return
				}
				p.reply("ok")
			})
		})
		resp, err := r.client.Complete(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, "ok", resp.Content)
		require.Len(t, ids, 3)
		require.Equal(t, ids[0], ids[2], "it is one request")
		require.GreaterOrEqual(t, time.Since(began), 13*time.Second, "Retry-After is a floor")
		require.Less(t, time.Since(began), 20*time.Second)
	})
}

func TestAdmissionBoundsTheWaitForAWorker(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, client.WithAdmission(5*time.Second))
		began := time.Now()
		_, err := r.client.Complete(t.Context(), ask())
		require.ErrorIs(t, err, llm.ErrUnavailable)
		require.WithinRange(t, time.Now(), began.Add(2*time.Second), began.Add(5*time.Second))

		began = time.Now()
		r.play(t, func(p *played) { p.refuse(llm.CodeBusy, 2000) })
		_, err = collect(r.client.Stream(t.Context(), ask()))
		require.ErrorIs(t, err, llm.ErrBusy)
		require.WithinRange(t, time.Now(), began.Add(2*time.Second), began.Add(5*time.Second))
	})
}

func TestAWaitThatDoesNotFitIsNotBegun(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		calls := 0
		r.play(t, func(p *played) { calls++; p.refuse(llm.CodeBusy, 60000) })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		_, err := r.client.Complete(ctx, ask())
		require.ErrorIs(t, err, llm.ErrBusy)
		require.Less(t, time.Since(began), 50*time.Millisecond)
		require.Equal(t, 3, calls, "two tries at once, in case others have room")
	})
}

func TestABusyWorkerSpeaksForItselfAlone(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		calls := 0
		r.play(t, func(p *played) {
			if calls++; calls < 3 {
				p.refuse(llm.CodeBusy, 1000)
				return
			}
			p.reply("ok")
		})
		began := time.Now()
		_, err := r.client.Complete(t.Context(), ask())
		require.NoError(t, err)
		require.Less(t, time.Since(began), 50*time.Millisecond)
	})
}

func TestOtherErrorsAreNotTriedAgain(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		for _, code := range []llm.Code{llm.CodeRateLimited, llm.CodeUnavailable, llm.CodeInternal} {
			calls := 0
			r := newRig(t)
			r.play(t, func(p *played) { calls++; p.refuse(code, 1) })
			_, err := r.client.Complete(t.Context(), ask())
			require.ErrorIs(t, err, &llm.Error{Code: code})
			require.Equal(t, 1, calls)
		}
	})
}

func TestNobodyServes(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, client.WithTimeout(10*time.Second))
		_, err := r.client.Complete(t.Context(), ask())
		require.ErrorIs(t, err, llm.ErrUnavailable)
		require.ErrorIs(t, err, nats.ErrNoResponders)
		_, err = collect(r.client.Stream(t.Context(), ask()))
		require.ErrorIs(t, err, llm.ErrUnavailable)
		require.ErrorIs(t, err, nats.ErrNoResponders)
	})
}

func TestForeignRepliesAreErrors(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.play(t, func(p *played) { _ = p.msg.Respond([]byte("hello")) })
		_, err := r.client.Complete(t.Context(), ask())
		require.ErrorIs(t, err, llm.ErrInternal)
		require.NotContains(t, err.Error(), "hello")
	})
}

func TestWhatCannotBeSentIsRefusedHere(t *testing.T) {
	r := newRig(t)
	wrong := ask()
	wrong.Feature = "a.>"
	_, err := r.client.Complete(t.Context(), wrong)
	require.ErrorIs(t, err, llm.ErrInvalidRequest)
	wrong = ask()
	wrong.ID = "a b"
	_, err = collect(r.client.Stream(t.Context(), wrong))
	require.ErrorIs(t, err, llm.ErrInvalidRequest)

	large := ask()
	large.Messages[0].Content = llm.Text(strings.Repeat("x", 2<<20))
	for _, err := range []error{second(r.client.Complete(t.Context(), large)), second(collect(r.client.Stream(t.Context(), large)))} {
		require.ErrorIs(t, err, llm.ErrTooLarge)
		require.Regexp(t, `the request is 2\d{6} bytes, more than the 1048576 bytes`, err.Error())
	}
	r.nc.Close()
	_, err = r.client.Complete(t.Context(), ask())
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	_, err = collect(r.client.Stream(t.Context(), ask()))
	require.ErrorIs(t, err, llm.ErrUnavailable)
}

func second[T any](_ T, err error) error { return err }

func TestOptionsAreChecked(t *testing.T) {
	nc := natstest.Connect(t, natstest.Server(t))
	for _, opt := range []client.Option{client.WithTimeout(0), client.WithSilence(-1), client.WithAdmission(0), client.WithTenant("a b"), client.WithTenantHeader("")} {
		_, err := client.New(nc, opt)
		require.Error(t, err)
	}
	_, err := client.New(nil)
	require.Error(t, err)
}
