package bus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

func TestRequestsOfTenantsByAccount(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New()
		r := start(t, model{p}, func(c *bus.Config) { c.Tenants = true })
		m := msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1", subjects.HeaderTenant, "other")
		m.Subject += ".ACME"
		frames := r.listen(t, subjects.Stream("ACME", "1"))
		r.ask(t, m)
		require.Equal(t, "ACME", p.Calls()[0].Request.Tenant)
		require.NotEmpty(t, received(t, frames))
	})
}

func TestATenantIsNeverLeftOut(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New()
		r := start(t, model{p}, func(c *bus.Config) { c.Tenants = true })
		e := refusal(t, r.ask(t, msg(`{"prompt":"hi"}`, subjects.HeaderTenant, "ACME")))
		require.Equal(t, llm.CodePolicyDenied, e.Code)
		m := msg(`{"prompt":"hi"}`)
		m.Subject += ".a:b"
		require.Equal(t, llm.CodeInvalidRequest, refusal(t, r.ask(t, m)).Code)
		require.Empty(t, p.Calls())
	})
}

func TestIdsOfTenantsAreApart(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs(), fake.Hangs())
		r := start(t, model{p}, func(c *bus.Config) { c.Tenants = true })
		for _, tenant := range []string{"ACME", "GLOBEX"} {
			m := msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1")
			m.Subject, m.Reply = subjects.CompleteOf("f", tenant), r.caller.NewInbox()
			r.listen(t, subjects.Stream(tenant, "1"))
			r.listen(t, m.Reply)
			r.publish(t, m)
		}
		require.Equal(t, 2, p.Running(), "the same id of two tenants is two requests")
		for _, other := range []string{subjects.Cancel("1"), subjects.CancelOf("1", "INITECH"), subjects.Cancel("GLOBEX 1")} {
			require.NoError(t, r.caller.Publish(other, nil))
		}
		natstest.Advance(time.Second) // a cancel that overtakes its request is looked at again
		require.Equal(t, 2, p.Running(), "nobody else can cancel them")
		require.NoError(t, r.caller.Publish(subjects.CancelOf("1", "GLOBEX"), nil))
		synctest.Wait()
		require.Equal(t, 1, p.Running())
		require.NoError(t, r.caller.Publish(subjects.CancelOf("1", "ACME"), nil))
		synctest.Wait()
		require.Zero(t, p.Running())
	})
}

// TestAGoneCallerOfATenantIsFound has one tenant's reader leave; the other's
// request of the same id goes on.
func TestAGoneCallerOfATenantIsFound(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs(), fake.Hangs())
		r := start(t, model{p}, func(c *bus.Config) { c.Tenants = true })
		stay, leave := r.listen(t, subjects.Stream("ACME", "1")), r.listen(t, subjects.Stream("GLOBEX", "1"))
		for _, tenant := range []string{"ACME", "GLOBEX"} {
			m := msg(`{"prompt":"hi","stream":true}`, subjects.HeaderRequestID, "1")
			m.Subject = subjects.CompleteOf("f", tenant)
			r.publish(t, m)
		}
		natstest.Advance(15 * time.Second)
		require.Equal(t, 2, p.Running())
		require.NoError(t, leave.Unsubscribe())
		natstest.Advance(10 * time.Second)
		require.Equal(t, 1, p.Running())
		require.NotEmpty(t, received(t, stay))
		require.EqualValues(t, 1, r.worker.Stats().CallerGone)
	})
}
