package conformance

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func (c *caller) jobChecks() []check {
	return []check{
		{"a job and its answer", func(ctx context.Context) error {
			id := rand.Text()
			return c.job(ctx, id, `{"prompt":"hello"}`, subjects.Result("", id), c.judgeResult)
		}},
		{"a job that cannot be done and its dead letter", func(ctx context.Context) error {
			id := rand.Text()
			return c.job(ctx, id, `{"prompt":"hello","temperature":3}`, subjects.DeadLetter(c.feature, "", id), c.judgeLetter)
		}},
	}
}

// job stores a job with plain NATS and judges its end, which comes on its
// subject and, besides, to the inbox that the job names.
func (c *caller) job(ctx context.Context, id, payload, end string, judge func(id string, msg *nats.Msg) error) error {
	inbox := c.nc.NewInbox()
	v, err := c.begin("job", question{subject: subjects.Job(c.feature), payload: []byte(payload), reply: inbox,
		header: map[string]string{subjects.HeaderRequestID: id, subjects.HeaderReplyTo: inbox}})
	if err != nil {
		return err
	}
	sub, err := c.nc.ChanSubscribe(end, v.heard)
	if err != nil {
		return err
	}
	v.subs = append(v.subs, sub)
	if err := v.until(ctx, func() bool { return len(v.Replies) > 0 }); err != nil {
		return fmt.Errorf("the job was not stored: %w", err)
	}
	ack, err := unmarshal[struct {
		Stream string `json:"stream"`
	}](v.Replies[0].Data)
	if err != nil || ack.Stream != subjects.JobsStream {
		return fmt.Errorf("the acknowledgement is not one of the stream %s", subjects.JobsStream)
	}
	if err := v.until(ctx, func() bool { return len(v.Frames) > 0 && len(v.Replies) > 1 }); err != nil {
		return err
	}
	if err := c.judge.Check("reply", v.Replies[1].Data); err != nil {
		return fmt.Errorf("what the job's inbox got: %w", err)
	}
	return judge(id, v.Frames[0])
}

func (c *caller) judgeResult(id string, msg *nats.Msg) error {
	if msg.Header.Get(subjects.HeaderMsgID) == "" {
		return fmt.Errorf("the answer has no header %s", subjects.HeaderMsgID)
	}
	if err := c.judge.Check("response", msg.Data); err != nil {
		return err
	}
	b, err := unmarshal[body](msg.Data)
	if err == nil && (b.ID != id || msg.Header.Get(subjects.HeaderRequestID) != id) {
		err = fmt.Errorf("the answer's id is not the job's")
	}
	return err
}

func (c *caller) judgeLetter(id string, msg *nats.Msg) error {
	if err := c.judge.Check("dead-letter", msg.Data); err != nil {
		return err
	}
	letter, err := unmarshal[struct {
		ID    string    `json:"id"`
		Error llm.Error `json:"error"`
	}](msg.Data)
	switch {
	case err != nil:
		return err
	case letter.ID != id:
		return fmt.Errorf("the letter's id is not the job's")
	case msg.Header.Get(subjects.HeaderError) != letter.Error.Error():
		return fmt.Errorf("header %s is not what the payload says", subjects.HeaderError)
	}
	return expected{Code: llm.CodeInvalidRequest, Names: "temperature"}.judge(body{Error: &letter.Error})
}
