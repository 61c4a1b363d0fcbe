package jobs_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func TestAJobIsAnsweredOnce(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		var got *llm.Request
		r := newRig(t, func(ctx context.Context, req *llm.Request, n int) (*llm.Response, error) {
			got = req
			return answers(ctx, req, n)
		})
		inbox := r.nc.NewInbox()
		replies, err := r.nc.SubscribeSync(inbox)
		require.NoError(t, err)
		live, err := r.nc.SubscribeSync(subjects.Results)
		require.NoError(t, err)
		r.start(t)
		r.send(t, `{"prompt":"hi","stream":true,"class":"interactive"}`, "j1", subjects.HeaderReplyTo, inbox)
		pass(time.Second)
		require.Equal(t, "ok", r.result(t, "j1").Content)
		require.Nil(t, r.letter(t, "j1"))
		require.Zero(t, r.left(t))
		require.True(t, got.Job)
		require.False(t, got.Stream)
		require.Equal(t, llm.ClassBackground, got.Class)
		reply, err := replies.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		stored, err := live.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, stored.Data, reply.Data)
		require.Equal(t, "j1", stored.Header.Get(subjects.HeaderMsgID))
		require.Equal(t, "p", reply.Header.Get(subjects.HeaderProvider))

		r.publish(t, "j1") // again
		pass(time.Second)
		require.Equal(t, 1, r.asked.count("j1"))
		require.Zero(t, r.left(t))
	})
}

func TestTheIdOfAJob(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, answers)
		r.start(t)
		r.publish(t, "")
		r.publish(t, "", subjects.HeaderMsgID, "mine")
		ack, err := r.js.Publish(t.Context(), subjects.Job("f"), []byte(`{"prompt":"hi"}`))
		require.NoError(t, err)
		pass(time.Second)
		for _, id := range []string{"job-1", "mine", subjects.JobOfSequence(ack.Sequence)} {
			require.NotNil(t, r.result(t, id), id)
		}
	})
}

func TestAReplyGoesToAnInboxOnly(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, answers)
		r.start(t)
		sub, err := r.nc.SubscribeSync("somewhere")
		require.NoError(t, err)
		r.publish(t, "j1", subjects.HeaderReplyTo, "somewhere")
		pass(time.Second)
		require.NotNil(t, r.result(t, "j1"))
		n, _, err := sub.Pending()
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestTries shows when a job is tried again, and when it is given up.
func TestTries(t *testing.T) {
	limited := called(llm.CodeRateLimited)
	limited.RetryAfterMS = 7000
	for name, tc := range map[string]struct {
		model   model
		headers []string
		after   time.Duration // the end comes between this and a tenth more, and a second
		tries   int           // calls
		code    llm.Code      // of the dead letter; empty for an answer
	}{
		"backoff":                    {model: fails(2, called(llm.CodeUnavailable)), after: 20 * time.Second, tries: 3},
		"backoff used up":            {model: fails(99, called(llm.CodeUnavailable)), after: 185 * time.Second, tries: 5, code: llm.CodeUnavailable},
		"no provider asked":          {model: fails(10, llm.Errorf(llm.CodeUnavailable, "open")), after: (65 + 7*120) * time.Second, tries: 11},
		"rate limit":                 {model: fails(10, limited), after: 70 * time.Second, tries: 11},
		"expires while rate limited": {model: fails(99, limited), headers: []string{subjects.HeaderExpiresMS, "20000"}, after: 14 * time.Second, tries: 3, code: llm.CodeDeadline},
		"hopeless":                   {model: fails(9, called(llm.CodeContextLength)), tries: 1, code: llm.CodeContextLength},
		"a panic":                    {model: func(context.Context, *llm.Request, int) (*llm.Response, error) { panic("x") }, after: 185 * time.Second, tries: 5, code: llm.CodeInternal},
		"bad expiry":                 {model: answers, headers: []string{subjects.HeaderExpiresMS, "soon"}, code: llm.CodeInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := newRig(t, tc.model)
				r.start(t)
				r.publish(t, "j1", tc.headers...)
				pass(tc.after - time.Millisecond)
				if tc.after > 0 {
					require.Nil(t, r.result(t, "j1"))
					require.Nil(t, r.letter(t, "j1"))
					require.Equal(t, 1, r.left(t))
				}
				pass(tc.after/10 + time.Second)
				require.Equal(t, tc.tries, r.asked.count("j1"))
				require.Zero(t, r.left(t))
				if tc.code == "" {
					require.NotNil(t, r.result(t, "j1"))
					require.Nil(t, r.letter(t, "j1"))
					return
				}
				require.Nil(t, r.result(t, "j1"))
				letter := r.letter(t, "j1")
				require.Equal(t, tc.code, letter.Error.Code)
				require.JSONEq(t, `{"prompt":"hi"}`, string(letter.Request))
				if tc.tries > 0 && name != "a panic" {
					require.Len(t, letter.Attempts, tc.tries)
				}
			})
		})
	}
}

// TestALongJobIsNotGivenTwice: two workers, and a call of ten times AckWait.
func TestALongJobIsNotGivenTwice(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, takes(300*time.Second))
		r.start(t)
		r.start(t)
		r.publish(t, "j1")
		pass(301 * time.Second)
		require.Equal(t, 1, r.asked.count("j1"))
		require.NotNil(t, r.result(t, "j1"))
		require.Zero(t, r.left(t))
	})
}

func TestAPoisonJobBlocksNobody(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(ctx context.Context, req *llm.Request, n int) (*llm.Response, error) {
			if len(req.ID) > 6 { // poison-…
				panic("poison")
			}
			return answers(ctx, req, n)
		})
		r.start(t, func(c *jobs.Config) { c.Slots = 2 })
		for i := range 40 {
			r.publish(t, "poison-"+strconv.Itoa(i))
		}
		r.send(t, `{`, "broken")
		r.publish(t, "good")
		pass(time.Second)
		require.NotNil(t, r.result(t, "good"))
		require.Equal(t, llm.CodeInvalidRequest, r.letter(t, "broken").Error.Code)
		require.Equal(t, 40, r.left(t))
		pass(5 * time.Minute)
		require.Zero(t, r.left(t))
		require.Equal(t, uint64(41), state(t, r.js, jobs.DeadStream).Msgs)
	})
}

// TestAWorkerThatEndsGivesItsJobsBack shows that nobody waits for AckWait.
func TestAWorkerThatEndsGivesItsJobsBack(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(ctx context.Context, req *llm.Request, n int) (*llm.Response, error) {
			if n == 1 {
				<-ctx.Done()
				return nil, &llm.Error{Code: llm.CodeInterrupted, Message: "x", Attempts: called("").Attempts}
			}
			return nil, called(llm.CodeContextLength)
		})
		first := r.start(t)
		for i := range 5 {
			r.publish(t, "j"+strconv.Itoa(i))
		}
		pass(time.Second)
		r.start(t)
		began := time.Now()
		first.end()
		pass(100 * time.Millisecond)
		require.Less(t, time.Since(began), time.Second)
		for i := range 5 {
			letter := r.letter(t, "j"+strconv.Itoa(i))
			require.NotNil(t, letter)
			require.Len(t, letter.Attempts, 2, "the broken call too")
			require.Equal(t, 1, letter.Tries)
		}
	})
}

func TestCancel(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, takes(time.Hour))
		r.start(t, func(c *jobs.Config) { c.Slots, c.MaxTimeout = 1, 2*time.Hour })
		r.publish(t, "running")
		pass(time.Second)
		r.publish(t, "waiting")
		pass(time.Millisecond) // a plain publish says nothing of when it is stored
		require.NoError(t, r.streams.Cancel(t.Context(), "", "waiting"))
		require.NoError(t, r.streams.Cancel(t.Context(), "", "running"))
		require.ErrorIs(t, r.streams.Cancel(t.Context(), "", "nobody"), jobs.ErrUnknownJob)
		pass(time.Second)
		for _, id := range []string{"running", "waiting"} {
			require.Equal(t, llm.CodeCancelled, r.letter(t, id).Error.Code, id)
		}
		require.Zero(t, r.asked.count("waiting"))
		require.Zero(t, r.left(t))
	})
}

func TestReplay(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, fails(2, called(llm.CodeInvalidRequest)))
		r.start(t)
		r.publish(t, "j1", subjects.HeaderExpiresMS, "60000")
		pass(time.Second)
		for replay := range 2 {
			letter := r.letter(t, "j1")
			require.Equal(t, replay, letter.Replay)
			for l, err := range r.streams.Dead(t.Context(), jobs.Of{Feature: "f"}) {
				require.NoError(t, err)
				require.NoError(t, r.streams.Replay(t.Context(), l))
				require.NoError(t, r.streams.Replay(t.Context(), l), "twice is once")
			}
			pass(time.Second)
		}
		require.Nil(t, r.letter(t, "j1"))
		require.NotNil(t, r.result(t, "j1"))
		require.Equal(t, 3, r.asked.count("j1"))
		require.Zero(t, r.left(t))
	})
}

func TestOpenIsRepeatable(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, answers)
		o := r.options
		o.ResultTTL, o.AckWait = time.Hour, 5*time.Second
		_, _, _ = open(t, r.nc, o)
		s, err := r.js.Stream(t.Context(), jobs.ResultsStream)
		require.NoError(t, err)
		require.Equal(t, time.Hour, s.CachedInfo().Config.MaxAge)
		q, err := r.js.Stream(t.Context(), jobs.QueueStream)
		require.NoError(t, err)
		require.Equal(t, jetstream.WorkQueuePolicy, q.CachedInfo().Config.Retention)
	})
}
