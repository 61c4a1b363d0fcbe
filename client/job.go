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
	msg := &nats.Msg{Subject: subjects.Job(req.Feature), Header: call.header, Data: call.payload}
	if _, err := js.PublishMsg(ctx, msg, jetstream.WithMsgID(call.id)); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, c.translate(err, msg)
	}
	return &llm.Job{ID: call.id, Result: subjects.Result("", call.id)}, nil
}

// lookAgain is how often the streams are asked for the end of a job, in case
// its message was missed.
const lookAgain = 10 * time.Second

// Result waits for the end of a job, or reads it if it is there already. The
// error of a job that was given up is that of its dead letter.
func (c *Client) Result(ctx context.Context, job *llm.Job) (*llm.Response, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	js, err := jetstream.New(c.nc)
	if err != nil {
		return nil, err
	}
	messages := make(chan *nats.Msg, 2)
	for _, subject := range []string{job.Result, subjects.DeadLetterOf(job.Result)} {
		sub, err := c.nc.ChanSubscribe(subject, messages)
		if err != nil {
			return nil, llm.Errorf(llm.CodeUnavailable, "listening over NATS: %w", err)
		}
		defer sub.Unsubscribe() //nolint:errcheck // fails only with the connection
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if msg := stored(ctx, js, job); msg != nil {
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
func stored(ctx context.Context, js jetstream.JetStream, job *llm.Job) *nats.Msg {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	for name, subject := range map[string]string{subjects.ResultsStream: job.Result, subjects.DeadStream: subjects.DeadLetterOf(job.Result)} {
		s, err := js.Stream(ctx, name)
		if err != nil {
			continue
		}
		if msg, err := s.GetLastMsgForSubject(ctx, subject); err == nil {
			return &nats.Msg{Subject: msg.Subject, Header: msg.Header, Data: msg.Data}
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
