package conformance

import (
	"context"
	"fmt"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func (c *caller) slowChecks() []check {
	list := []check{
		{"a whole answer is cancelled", func(ctx context.Context) error { return c.cancelled(ctx, `{"prompt":"hello"}`) }},
		{"a stream is cancelled", func(ctx context.Context) error { return c.cancelled(ctx, `{"prompt":"hello","stream":true}`) }},
		{"an id that is under way is refused", c.twice},
		{"signs of life while a model is slow", c.signs},
		{"time runs out", c.deadline},
	}
	for i, slow := range list {
		list[i].run = func(ctx context.Context) error {
			if c.slow == "" {
				return leftOut("it needs a slow feature")
			}
			return slow.run(ctx)
		}
	}
	return list
}

func (c *caller) askSlowly(payload string, header map[string]string) question {
	q := c.ask(payload)
	q.subject, q.header = subjects.Complete(c.slow), header
	return q
}

// pings is a header that makes a worker say when it has taken a request.
func pings() map[string]string { return map[string]string{subjects.HeaderPingMS: "100"} }

// taken waits for the first frame of a request, a ping or the start.
func (v *conversation) taken(ctx context.Context) error {
	return v.until(ctx, func() bool { return len(v.Frames) > 0 })
}

func (c *caller) cancelled(ctx context.Context, payload string) error {
	q := c.askSlowly(payload, pings())
	v, err := c.begin("cancel", q)
	if err != nil {
		return err
	}
	if err := v.taken(ctx); err != nil {
		return err
	}
	if err := c.nc.Publish(subjects.Cancel(q.id), nil); err != nil {
		return err
	}
	want := expected{Code: llm.CodeCancelled}
	if f, _ := unmarshal[struct {
		Stream bool `json:"stream"`
	}](q.payload); f.Stream {
		return v.subjectStream(ctx, want)
	}
	return v.whole(ctx, want)
}

// twice uses an id that is under way. Only the worker that has it can refuse it,
// so the second request is sent until it meets that one.
func (c *caller) twice(ctx context.Context) error {
	q := c.askSlowly(`{"prompt":"hello"}`, pings())
	first, err := c.begin("first of two", q)
	if err != nil {
		return err
	}
	if err := first.taken(ctx); err != nil {
		return err
	}
	if err := c.again(ctx, q.id); err != nil {
		return err
	}
	if err := c.nc.Publish(subjects.Cancel(q.id), nil); err != nil {
		return err
	}
	return first.whole(ctx, expected{Code: llm.CodeCancelled})
}

func (c *caller) again(ctx context.Context, id string) error {
	for range 64 {
		v, err := c.begin("second of two", question{subject: subjects.Complete(c.feature), payload: []byte(`{"prompt":"hello"}`),
			header: map[string]string{subjects.HeaderRequestID: id}})
		if err != nil {
			return err
		}
		if err := v.until(ctx, func() bool { return len(v.Replies) > 0 }); err != nil {
			return err
		}
		b, err := c.judgeReply(id, v.Replies[0])
		if err != nil {
			return err
		}
		if b.Error != nil {
			return expected{Code: llm.CodeInvalidRequest, Names: "id"}.judge(b)
		}
	}
	return fmt.Errorf("the id was taken 64 times while it was under way")
}

// signs counts pings up to the third.
func (c *caller) signs(ctx context.Context) error {
	q := c.askSlowly(`{"prompt":"hello"}`, pings())
	v, err := c.begin("signs of life", q)
	if err != nil {
		return err
	}
	if err := v.until(ctx, func() bool { return len(v.Frames) > 2 || len(v.Replies) > 0 }); err != nil {
		return err
	}
	if len(v.Replies) > 0 {
		return leftOut("the slow feature answered before three pings")
	}
	if err := c.nc.Publish(subjects.Cancel(q.id), nil); err != nil {
		return err
	}
	return v.whole(ctx, expected{Code: llm.CodeCancelled})
}

func (c *caller) deadline(ctx context.Context) error {
	v, err := c.begin("deadline", c.askSlowly(`{"prompt":"hello"}`, map[string]string{subjects.HeaderTimeoutMS: "150"}))
	if err != nil {
		return err
	}
	return v.whole(ctx, expected{Code: llm.CodeDeadline})
}
