package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Submit stores the request as a background job and returns when it is stored.
// An empty req.ID is replaced by a random one. A second Submit with the same ID
// within ten minutes, or after the job is done, changes nothing.
func (c *Client) Submit(ctx context.Context, req *llm.Request) (*llm.Job, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	call, err := c.newCall(req, false)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(c.nc)
	if err != nil {
		return nil, err
	}
	msg := &nats.Msg{Subject: subjects.JobOf(req.Feature, c.tenant), Header: call.header, Data: call.payload}
	if _, err := js.PublishMsg(ctx, msg, jetstream.WithMsgID(subjects.JobKey(c.tenant, call.id))); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, c.translate(err, msg)
	}
	return &llm.Job{ID: call.id, Result: subjects.Result(c.tenant, call.id)}, nil
}

// lookAgain is how often the streams are asked for the end of a job, in case
// its message was missed.
const lookAgain = 10 * time.Second

// Result waits for the end of a job, or reads it if it is there already. The
// error of a job that was given up is that of its dead letter. The job is found
// by its ID: where tenants are accounts, the subject that a worker knows is not
// the one that its caller listens to.
func (c *Client) Result(ctx context.Context, job *llm.Job) (*llm.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	messages := make(chan *nats.Msg, 2)
	for _, subject := range []string{subjects.Result(c.tenant, job.ID), subjects.DeadLetter("*", c.tenant, job.ID)} {
		sub, err := c.nc.ChanSubscribe(subject, messages)
		if err != nil {
			return nil, llm.Errorf(llm.CodeUnavailable, "listening over NATS: %w", err)
		}
		defer sub.Unsubscribe() //nolint:errcheck // fails only with the connection
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if msg := c.stored(ctx, job); msg != nil {
			return endOf(msg)
		}
		select {
		case msg := <-messages:
			return endOf(msg)
		case <-again.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stored reads the end of a job from its stream; nil if there is none, or none
// can be read now.
func (c *Client) stored(ctx context.Context, job *llm.Job) *nats.Msg {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	for _, subject := range []string{subjects.StoredResult(c.tenant, job.ID), subjects.StoredDeadLetter(c.tenant, job.ID)} {
		msg, err := c.nc.RequestWithContext(ctx, subject, nil)
		if err == nil && msg.Header.Get(subjects.HeaderStatus) == "" { // otherwise the server says why there is none
			return msg
		}
	}
	return nil
}

// endOf reads an answer or a dead letter.
func endOf(msg *nats.Msg) (*llm.Response, error) {
	var letter struct {
		Error    *llm.Error    `json:"error"`
		Attempts []llm.Attempt `json:"attempts"`
	}
	resp, err := decodeReply(msg)
	if e, ok := errors.AsType[*llm.Error](err); ok && json.Unmarshal(msg.Data, &letter) == nil && letter.Error != nil {
		e.Attempts = letter.Attempts
	}
	return resp, err
}
