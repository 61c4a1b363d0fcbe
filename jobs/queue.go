package jobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Queue hands requests over to jobs. It may be used by many goroutines at once.
type Queue struct {
	js      jetstream.JetStream
	tenants bool
}

// NewQueue makes a Queue. tenants says that the tenant of a request goes into
// the subject, where a server that maps accounts would put it.
func NewQueue(js jetstream.JetStream, tenants bool) *Queue { return &Queue{js, tenants} }

// Enqueue stores a request as a job of its own id, and returns when it is
// stored. The limits of the request's own call, such as its time, do not bind
// the job.
func (q *Queue) Enqueue(ctx context.Context, req *llm.Request) (*llm.Job, error) {
	wire := *req
	wire.Stream, wire.StreamTo, wire.TimeoutMS, wire.Class, wire.IdempotencyKey = false, "", 0, "", ""
	data, err := json.Marshal(&wire)
	if err != nil {
		return nil, fmt.Errorf("write a job: %w", err)
	}
	id, tenant := rand.Text(), ""
	header := nats.Header{subjects.HeaderRequestID: {id}}
	switch {
	case req.Tenant == "":
	case q.tenants:
		tenant = req.Tenant
	default:
		header.Set(subjects.HeaderTenant, req.Tenant)
	}
	if req.TraceParent != "" {
		header.Set(subjects.HeaderTraceParent, req.TraceParent)
	}
	msg := &nats.Msg{Subject: subjects.JobOf(req.Feature, tenant), Header: header, Data: data}
	if _, err := q.js.PublishMsg(ctx, msg, jetstream.WithMsgID(subjects.JobKey(tenant, id))); err != nil {
		return nil, fmt.Errorf("store a job: %w", err)
	}
	return &llm.Job{ID: id, Result: subjects.Result(tenant, id)}, nil
}
