package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// sendOf stores a job of a tenant.
func (r *rig) sendOf(t *testing.T, tenant, id string) {
	t.Helper()
	m := &nats.Msg{Subject: subjects.JobOf("f", tenant), Data: []byte(`{"prompt":"hi"}`), Header: nats.Header{subjects.HeaderRequestID: {id}}}
	require.NoError(t, r.nc.PublishMsg(m))
	require.NoError(t, r.nc.Flush())
}

func TestJobsOfTenantsWithTheSameID(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, req *llm.Request, _ int) (*llm.Response, error) {
			resp := answer(req)
			resp.Content = "for " + req.Tenant
			return resp, nil
		})
		r.start(t, func(c *jobs.Config) { c.Tenants = true })
		for _, tenant := range []string{"ACME", "GLOBEX"} {
			r.sendOf(t, tenant, "1")
			pass(time.Second)
		}
		for _, tenant := range []string{"ACME", "GLOBEX"} {
			resp, err := r.streams.Result(t.Context(), tenant, "1")
			require.NoError(t, err)
			require.Equal(t, "for "+tenant, resp.Content)
		}
		resp, err := r.streams.Result(t.Context(), "", "1")
		require.NoError(t, err)
		require.Contains(t, resp.Content, "for ", "whoever's it is")
		_, err = r.streams.Result(t.Context(), "INITECH", "1")
		require.ErrorIs(t, err, jobs.ErrUnknownJob)
	})
}

func TestAJobOfAnotherTenantIsNotCancelled(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, takes(time.Hour))
		r.start(t, func(c *jobs.Config) { c.Tenants, c.MaxTimeout = true, 2*time.Hour })
		r.sendOf(t, "ACME", "1")
		r.sendOf(t, "GLOBEX", "1")
		pass(time.Second)
		for _, other := range []string{subjects.Cancel("1"), subjects.CancelOf("1", "INITECH")} {
			require.NoError(t, r.nc.Publish(other, nil))
		}
		require.ErrorIs(t, r.streams.Cancel(t.Context(), "INITECH", "1"), jobs.ErrUnknownJob)
		pass(time.Second)
		require.Equal(t, 2, r.left(t))
		require.NoError(t, r.streams.Cancel(t.Context(), "GLOBEX", "1"))
		pass(time.Second)
		require.Equal(t, 1, r.left(t))
		n, err := r.streams.CountDead(t.Context(), jobs.Of{Tenant: "GLOBEX"})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n, err = r.streams.CountDead(t.Context(), jobs.Of{Tenant: "ACME"})
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestAJobOfNoTenantIsGivenUp(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := newRig(t, answers)
		r.start(t, func(c *jobs.Config) { c.Tenants = true })
		r.publish(t, "1", subjects.HeaderTenant, "ACME")
		pass(time.Second)
		require.Equal(t, llm.CodePolicyDenied, r.letter(t, "1").Error.Code)
		require.Zero(t, r.asked.count("1"))
	})
}
