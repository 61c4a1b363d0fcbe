package chain_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// notebook is an auditor that writes everything down.
type notebook struct{ decisions []chain.Decision }

func (n *notebook) Audit(d chain.Decision) { n.decisions = append(n.decisions, d) }

// audited is a rig whose decisions are written down.
func audited(t *testing.T, tune func(*chain.Feature), fakes ...*fake.Provider) (*rig, *notebook) {
	t.Helper()
	book := &notebook{}
	r := newRig(t, func(f *chain.Feature) {
		f.Audit = true
		if tune != nil {
			tune(f)
		}
	}, fakes...)
	r.Router = chain.NewRouter(chain.Config{Switches: r.switches, Auditor: book})
	r.Load([]chain.Feature{r.feature})
	return r, book
}

func candidate(provider string, c chain.Candidate) chain.Candidate {
	c.Provider, c.Model = provider, "m"
	return c
}

// eight is a chain of which every target has its own fate.
func eight(t *testing.T) (*rig, *notebook) {
	t.Helper()
	limited := failure(llm.OutcomeRateLimited, "")
	limited.RetryAfter = new(time.Hour)
	rig, book := audited(t, func(f *chain.Feature) {
		approve(f, nil, classes, classes, classes, classes, classes, classes, classes)
		f.DataClass, f.Regions = "internal", []string{"eu"}
		for i := range f.Targets {
			f.Targets[i].Can.Regions = []string{"eu"}
		}
		f.Targets[1].Can.Regions = []string{"eu", "us"}
		f.Targets[2].Can.Seed = false
		f.Targets[5].Can.ContextWindow = 10
	}, fake.New(), fake.New(), fake.New(), fake.New(), fake.New(fake.Fails(limited)), fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New(), fake.New())
	rig.switches.set(t, map[string]string{"provider.d": "off"})
	first := ask()
	first.Seed = new(int64(1))
	require.Equal(t, "g", complete(t.Context(), rig, first).resp.Provider) // e cools from now on
	book.decisions = nil
	return rig, book
}

func TestADecisionNamesEveryTargetAndItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig, book := eight(t)
		req := ask()
		req.Tenant, req.Seed = "acme", new(int64(1))
		require.Nil(t, stream(t.Context(), rig, req).err)
		require.Len(t, book.decisions, 1)
		d := book.decisions[0]
		require.Equal(t, []chain.Candidate{
			candidate("a", chain.Candidate{Skip: chain.SkipNotApproved, Detail: "internal"}),
			candidate("b", chain.Candidate{Skip: chain.SkipRegion, Detail: "eu, us"}),
			candidate("c", chain.Candidate{Skip: chain.SkipLacks, Detail: "seed"}),
			candidate("d", chain.Candidate{Skip: chain.SkipSwitchedOff}),
			candidate("e", chain.Candidate{Skip: chain.SkipCooling, Detail: "rate_limited"}),
			candidate("f", chain.Candidate{Calls: 1, Turn: 1, Outcome: llm.OutcomeConnect}),
			candidate("g", chain.Candidate{Calls: 1, Turn: 2, Outcome: llm.OutcomeOK}),
			candidate("h", chain.Candidate{Skip: chain.SkipNotReached}),
		}, d.Targets)
		d.Targets = nil
		require.Equal(t, chain.Decision{RequestID: "r1", Feature: "f", Tenant: "822b33ad87c1", Class: llm.ClassInteractive, DataClass: "internal", Stream: true,
			Provider: "g", Model: "m", ServedBy: llm.ServedByModel}, d)
	})
}

func TestADecisionOfARequestThatFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags map[string]string
		ask   func(*llm.Request)
		code  llm.Code
		class string
		want  []chain.Candidate
	}{
		{"unknown class", nil, func(r *llm.Request) { r.DataClass = "very secret" }, llm.CodeInvalidRequest, "",
			[]chain.Candidate{{Skip: chain.SkipNotApproved, Detail: "undeclared"}, {Skip: chain.SkipNotApproved, Detail: "undeclared"}}},
		{"class of nobody", nil, func(r *llm.Request) { r.DataClass = "restricted" }, llm.CodePolicyDenied, "restricted",
			[]chain.Candidate{{Skip: chain.SkipNotApproved, Detail: "restricted"}, {Skip: chain.SkipNotApproved, Detail: "restricted"}}},
		{"feature off", map[string]string{"feature.f": "off"}, nil, llm.CodeSwitchedOff, "public",
			[]chain.Candidate{{Skip: chain.SkipNotReached}, {Skip: chain.SkipNotReached}}},
		{"without failover", map[string]string{"failover": "off"}, nil, llm.CodeUnavailable, "public",
			[]chain.Candidate{{Calls: 1, Turn: 1, Outcome: llm.OutcomeConnect}, {Skip: chain.SkipNoFailover}}},
		{"no larger window", nil, func(r *llm.Request) { r.Stop = []string{"context"} }, llm.CodeContextLength, "public",
			[]chain.Candidate{{Calls: 1, Turn: 1, Outcome: llm.OutcomeContextLength}, {Skip: chain.SkipNoBetter}}},
	} {
		for way, do := range both {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				script := func(_ int, req *llm.Request) fake.Step {
					if len(req.Stop) > 0 {
						return fake.FailsWith(llm.OutcomeContextLength)
					}
					return fake.FailsWith(llm.OutcomeConnect)
				}
				rig, book := audited(t, func(f *chain.Feature) {
					approve(f, []string{"public"}, []string{"public"})
					f.DataClass = "public"
				}, fake.Func(script), fake.New())
				rig.switches.set(t, c.flags)
				req := ask()
				if c.ask != nil {
					c.ask(req)
				}
				require.Equal(t, c.code, do(t.Context(), rig, req).err.Code)
				d := book.decisions[0]
				require.Equal(t, []chain.Candidate{candidate("a", c.want[0]), candidate("b", c.want[1])}, d.Targets)
				require.Equal(t, c.code, d.Code)
				require.Equal(t, c.class, d.DataClass)
				text, err := json.Marshal(d)
				require.NoError(t, err)
				require.NotContains(t, string(text), "very secret", "what a caller invents is not written down")
			})
		}
	}
}

func TestFeaturesWithoutAuditAreNotAudited(t *testing.T) {
	rig, book := audited(t, func(f *chain.Feature) { f.Audit = false }, fake.New())
	require.Nil(t, complete(t.Context(), rig, ask()).err)
	require.Empty(t, book.decisions)
}

// What is explained is what then happens.
func TestExplainForesees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig, book := eight(t)
		req := ask()
		req.Seed = new(int64(1))
		calls := rig.counts()
		told, err := rig.Explain(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, calls, rig.counts(), "nobody is asked")
		require.Nil(t, complete(t.Context(), rig, req).err)
		happened := book.decisions[0]
		for i, c := range happened.Targets[:7] {
			require.Equal(t, c.Skip, told.Targets[i].Skip)
			require.Equal(t, c.Detail, told.Targets[i].Detail)
			require.Equal(t, c.Turn, told.Targets[i].Turn)
		}
		require.Equal(t, candidate("h", chain.Candidate{Turn: 3}), told.Targets[7], "if the others fail")
		require.Equal(t, "internal", told.DataClass)
		require.Empty(t, told.Code)
	})
}

func TestExplainOfWhatWouldBeRefused(t *testing.T) {
	rig, book := audited(t, func(f *chain.Feature) { approve(f, classes); f.DataClass = "public" }, fake.New())
	explain := func(tune func(*llm.Request)) chain.Decision {
		req := ask()
		tune(req)
		d, err := rig.Explain(t.Context(), req)
		require.NoError(t, err)
		return d
	}
	d := explain(func(r *llm.Request) { r.DataClass = "secret" })
	require.Equal(t, llm.CodeInvalidRequest, d.Code)
	require.Contains(t, d.Reason, "must be one of public")
	rig.switches.set(t, map[string]string{"provider.a": "off"})
	d = explain(func(*llm.Request) {})
	require.Equal(t, llm.CodeSwitchedOff, d.Code)
	require.Equal(t, chain.SkipSwitchedOff, d.Targets[0].Skip)
	rig.switches.set(t, map[string]string{"tenant.acme": "off"})
	rig.switches.degraded = true
	d = explain(func(r *llm.Request) { r.Tenant = "acme" })
	require.Equal(t, []any{llm.CodeSwitchedOff, "tenant.acme is switched off by an operator", true}, []any{d.Code, d.Reason, d.Degraded})
	_, err := rig.Explain(t.Context(), &llm.Request{Feature: "other"})
	require.ErrorContains(t, err, `feature "other" is not configured`)
	require.Empty(t, book.decisions, "nothing was decided")
}

func TestExplainSaysWhoWouldProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig, _ := audited(t, nil, fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New())
		for range 5 {
			complete(t.Context(), rig, ask())
		}
		require.Equal(t, breaker.Open, rig.state("a"))
		d, err := rig.Explain(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, candidate("a", chain.Candidate{Skip: chain.SkipCircuitOpen, Detail: "connect"}), d.Targets[0])
		pass(time.Minute)
		for range 2 { // to look takes nothing
			d, err = rig.Explain(t.Context(), ask())
			require.NoError(t, err)
			require.Equal(t, candidate("a", chain.Candidate{Turn: 1, Detail: "as the probe of an open circuit"}), d.Targets[0])
		}
		require.Equal(t, breaker.Open, rig.state("a"))
	})
}

// discard hears and forgets.
type discard struct{}

func (discard) Audit(chain.Decision) {}

// quick answers at once and keeps no record.
type quick struct{ llm.Completer }

func (quick) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	return &llm.Response{Content: "ok", FinishReason: llm.FinishStop}, nil
}

// BenchmarkAudit is what notes cost a request of a feature that is audited.
func BenchmarkAudit(b *testing.B) {
	for _, audit := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[audit], func(b *testing.B) {
			group, err := breaker.New(breaker.Config{})
			require.NoError(b, err)
			f := chain.Feature{Name: "f", Class: llm.ClassInteractive, Timeout: time.Minute, Audit: audit}
			for _, name := range []string{"a", "b", "c"} {
				f.Targets = append(f.Targets, chain.Target{Provider: name, Model: "m", Completer: quick{}, Can: able, Attempts: 1, Breaker: group.Breaker(name, breaker.Settings{})})
			}
			router := chain.NewRouter(chain.Config{Switches: &switches{}, Auditor: discard{}})
			router.Load([]chain.Feature{f})
			req := ask()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := router.Complete(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestATargetThatIsTooDearIsWrittenDown(t *testing.T) {
	p, book := rich(), &notebook{}
	p.usd = 0.02
	rig := limitedRig(t, p, func(f *chain.Feature) {
		f.Audit = true
		f.Targets[0].Price, f.Targets[1].Price = chain.Price{Output: 1000}, chain.Price{Output: 10}
	}, fake.New(), fake.New(used(1, 1)))
	rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Limiter: p, Auditor: book})
	rig.Load([]chain.Feature{rig.feature})
	require.Nil(t, complete(t.Context(), rig, ask()).err)
	require.Equal(t, candidate("a", chain.Candidate{Skip: chain.SkipOverLimit, Detail: "usd_per_day"}), book.decisions[0].Targets[0])
}
