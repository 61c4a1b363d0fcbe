package app_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/audit"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

const ruledConfig = `data_rules: {classes: [public, internal, secret]}
providers:
  far: {kind: echo, approved_for: [public]}
  near: {kind: echo, approved_for: [public, internal]}
features:
  default:
    min_data_class: internal
    targets: [{provider: far, model: m}, {provider: near, model: m}]
    fallback: queue
    jobs: {backoff: [100ms]}
`

// classed is a question that names its data class.
func classed(class string) *llm.Request {
	req := question("default", "canary")
	req.DataClass = class
	return req
}

// records reads the audit until it holds n records.
func records(t *testing.T, nc *nats.Conn, n int) (list []audit.Record) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		list = nil
		for r, err := range audit.Read(t.Context(), js, audit.Query{}) {
			if err != nil {
				return false
			}
			list = append(list, r)
		}
		return len(list) >= n
	}, patience, 20*time.Millisecond)
	require.Len(t, list, n)
	return list
}

func TestDataRulesHoldForRequestsAndJobs(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), ruledConfig)
	nc := srv.Dial()
	c, err := client.New(nc, client.WithTimeout(patience))
	require.NoError(t, err)
	resp, err := c.Complete(t.Context(), classed("public"))
	require.NoError(t, err)
	require.Equal(t, "near", resp.Provider)
	require.Equal(t, []string{"data_class public was raised to internal, the least that the feature default takes"}, resp.Warnings)
	for class, code := range map[string]llm.Code{"secret": llm.CodePolicyDenied, "nonsense": llm.CodeInvalidRequest} {
		_, err = c.Complete(t.Context(), classed(class))
		require.ErrorIs(t, err, &llm.Error{Code: code})
	}
	job, err := c.Submit(t.Context(), classed(""))
	require.NoError(t, err)
	resp, err = c.Result(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, "near", resp.Provider)

	list := records(t, nc, 4)
	for i, want := range []struct {
		class string
		code  llm.Code
		job   bool
	}{{"internal", "", false}, {"internal", "", true}} {
		r := list[i*3]
		require.Equal(t, want.class, r.DataClass)
		require.Equal(t, want.job, r.Job)
		require.Equal(t, []chain.Candidate{
			{Provider: "far", Model: "m", Skip: chain.SkipNotApproved, Detail: "internal"},
			{Provider: "near", Model: "m", Calls: 1, Outcome: llm.OutcomeOK, Turn: 1},
		}, r.Targets)
	}
	p.ended(t)
}

// A request that is handed over keeps its class, whatever the policy says when
// the job runs.
func TestAJobKeepsTheClassOfItsRequest(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), ruledConfig)
	nc := srv.Dial()
	b := buckets(t, nc)
	_, err := b.Flags.Put(t.Context(), kv.AllKey, []byte("off"))
	require.NoError(t, err)
	var resp *llm.Response
	require.Eventually(t, func() bool {
		resp, err = ask(t, nc, "default", "canary")
		return err == nil && resp.Job != nil
	}, patience, tick)
	// From now on nobody is approved for internal data.
	_, err = b.Features.Put(t.Context(), "feature.default", []byte("data_class: public\ntargets: [{provider: far, model: m}]\njobs: {backoff: [100ms]}"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e, err := ask(t, nc, "default", "canary")
		return err != nil && e == nil // there is no fallback any more
	}, patience, tick)
	require.NoError(t, b.Flags.Delete(t.Context(), kv.AllKey, 0))
	c, err := client.New(nc, client.WithTimeout(patience))
	require.NoError(t, err)
	_, err = c.Result(t.Context(), resp.Job)
	require.ErrorIs(t, err, &llm.Error{Code: llm.CodePolicyDenied})
	p.ended(t)
}

func TestAKeyIsNotSharedBetweenClasses(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), ruledConfig)
	c, err := client.New(srv.Dial(), client.WithTimeout(patience))
	require.NoError(t, err)
	req := classed("internal")
	req.IdempotencyKey = "k"
	_, err = c.Complete(t.Context(), req)
	require.NoError(t, err)
	other := classed("public")
	other.IdempotencyKey = "k"
	_, err = c.Complete(t.Context(), other)
	require.ErrorContains(t, err, "idempotency_key was used for another request")
	p.ended(t)
}

func TestWithoutDataRulesNothingIsAudited(t *testing.T) {
	for _, config := range []string{echoConfig, "data_rules: {classes: [open], audit: false}\nproviders: {echo: {approved_for: [open]}}\nfeatures: {default: {data_class: open, targets: [{provider: echo, model: echo}]}}\n"} {
		srv := natstest.ListenServer(t)
		p := start(t, joining(srv), config)
		nc := srv.Dial()
		_, err := ask(t, nc, "default", "hello")
		require.NoError(t, err)
		p.ended(t)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		_, err = js.Stream(t.Context(), subjects.AuditStream)
		require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	}
}

func TestAWorkerDoesNotStartWithoutItsDataRules(t *testing.T) {
	srv := natstest.ListenServer(t)
	p := start(t, joining(srv), ruledConfig)
	_, err := buckets(t, srv.Dial()).Features.Put(t.Context(), "data_rules", []byte("classes: none"))
	require.NoError(t, err)
	_, err = ask(t, srv.Dial(), "default", "hello")
	require.NoError(t, err, "one that runs keeps those it has")
	p.ended(t)
	late := launch(t, joining(srv), "")
	err = late.result(t)
	require.ErrorContains(t, err, "no feature can be served")
	require.ErrorContains(t, err, "data_rules.classes: must be a list in brackets")
}
