package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

func (c *caller) streamChecks() []check {
	return []check{
		{"one sign of life at once, for a whole answer", c.greeting},
		{"no answer to a subject that is no inbox", c.aimed},
		{"kept frames are read again", c.resumed},
		{"kept frames of an unknown id", c.resumedUnknown},
		{"kept frames from a number that is none", c.resumedBadly},
		{"one call for one idempotency key", c.replayed},
	}
}

// greeting asks for pings beside a whole answer.
func (c *caller) greeting(ctx context.Context) error {
	q := c.ask(`{"prompt":"hello"}`)
	q.header = map[string]string{subjects.HeaderPingMS: "500"}
	v, err := c.begin("pings", q)
	if err != nil {
		return err
	}
	if err := v.whole(ctx, expected{Answer: true}); err != nil {
		return err
	}
	if len(v.Frames) == 0 {
		return fmt.Errorf("no ping came before the answer")
	}
	for i, msg := range v.Frames {
		f, err := c.judgeFrame(msg)
		if err == nil && (f.Type != "ping" || f.Seq != uint64(i+1)) {
			err = fmt.Errorf("frame %d is not ping %d", i+1, i+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aimed names a reply subject that a worker must not publish to; hush sees what
// it does publish.
func (c *caller) aimed(context.Context) error {
	q := c.ask(`{"prompt":"hello"}`)
	q.reply = "conformance.target." + rand.Text()
	_, err := c.begin("no answer to a subject that is no inbox", q)
	return err
}

// resumed reads a resumable stream, and then again from the middle.
func (c *caller) resumed(ctx context.Context) error {
	q := c.ask(`{"prompt":"one two three four","stream":true,"resumable":true}`)
	v, err := c.begin("resumable", q)
	if err != nil {
		return err
	}
	if err := v.subjectStream(ctx, expected{Answer: true}); err != nil {
		return err
	}
	if b, _ := unmarshal[body](v.Replies[0].Data); len(b.Warnings) > 0 {
		return leftOut("the workers keep no frames")
	}
	from := uint64(len(v.Frames)/2 + 1)
	again, err := c.begin("resume", question{subject: subjects.Resume(q.id), header: map[string]string{subjects.HeaderFromSeq: strconv.FormatUint(from, 10)}})
	if err != nil {
		return err
	}
	if err := again.until(ctx, func() bool { return endsEmpty(again.Replies) }); err != nil {
		return err
	}
	frames, err := inboxFrames(again.Replies)
	if err != nil {
		return err
	}
	if _, err := c.judgeFrames("", frames, from); err != nil {
		return err
	}
	return sameFrames(v.Frames[from-1:], frames)
}

func sameFrames(sent, kept []*nats.Msg) error {
	if len(sent) != len(kept) {
		return fmt.Errorf("%d frames were sent and %d are kept", len(sent), len(kept))
	}
	for i := range sent {
		if string(sent[i].Data) != string(kept[i].Data) {
			return fmt.Errorf("frame %d was kept with other bytes", i+1)
		}
	}
	return nil
}

func (c *caller) resumedUnknown(ctx context.Context) error {
	return c.refusedReader(ctx, rand.Text(), "1", llm.CodeUnknownRequest)
}

func (c *caller) resumedBadly(ctx context.Context) error {
	return c.refusedReader(ctx, rand.Text(), "0", llm.CodeInvalidRequest)
}

// refusedReader expects a plain error and the empty message.
func (c *caller) refusedReader(ctx context.Context, id, from string, code llm.Code) error {
	v, err := c.begin("refused reader", question{subject: subjects.Resume(id), header: map[string]string{subjects.HeaderFromSeq: from}})
	if err != nil {
		return err
	}
	if err := v.until(ctx, func() bool { return endsEmpty(v.Replies) }); err != nil {
		return err
	}
	if len(v.Replies) != 2 {
		return fmt.Errorf("%d messages came, not an error and an empty one", len(v.Replies))
	}
	b, err := c.judgeReply("", v.Replies[0])
	if err != nil {
		return err
	}
	return expected{Code: code}.judge(b)
}

// replayed asks twice with one key: the second answer is the first one's.
func (c *caller) replayed(ctx context.Context) error {
	payload := fmt.Sprintf(`{"prompt":"hello","idempotency_key":"conformance-%s"}`, rand.Text())
	var answers [2]body
	for i := range answers {
		v, err := c.begin("idempotency", c.ask(payload))
		if err != nil {
			return err
		}
		if err := v.whole(ctx, expected{Answer: true}); err != nil {
			return err
		}
		if answers[i], err = unmarshal[body](v.Replies[0].Data); err != nil {
			return err
		}
	}
	switch {
	case answers[0].Replayed:
		return fmt.Errorf("the first answer says that it was replayed")
	case !answers[1].Replayed:
		return fmt.Errorf("the second answer does not say that it was replayed")
	case answers[0].Content != answers[1].Content:
		return fmt.Errorf("the two answers differ")
	}
	return nil
}
