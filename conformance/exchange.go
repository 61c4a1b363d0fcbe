package conformance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

const exchangesFile = "exchanges"

// exchange is a request and what must come of it.
type exchange struct {
	Name    string            `json:"name"`
	Feature string            `json:"feature"` // another than the one under test
	NoID    bool              `json:"no_id"`
	Header  map[string]string `json:"header"`
	Payload json.RawMessage   `json:"payload"`
	Frames  string            `json:"frames"` // where frames are due: subject, reply or, by default, nowhere
	Expect  expected          `json:"expect"`

	payload []byte
}

// exchangeChecks are those of the file, and one for each request that must be
// refused.
func exchangeChecks() ([]exchange, error) {
	list, err := load[exchange](exchangesFile)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].payload = list[i].Payload
	}
	requests, err := Fixtures("request")
	if err != nil {
		return nil, err
	}
	for _, f := range requests {
		if !f.Valid {
			list = append(list, exchange{Name: "refused: " + f.Name, payload: f.Bytes(),
				Expect: expected{Code: llm.CodeInvalidRequest, Names: f.Names}})
		}
	}
	headers, err := Fixtures("request-headers")
	if err != nil {
		return nil, err
	}
	for _, f := range headers {
		if x := (exchange{Name: "refused: " + f.Name, payload: []byte(`{"prompt":"hello"}`),
			Expect: expected{Code: llm.CodeInvalidRequest, Names: f.Names}}); !f.Valid {
			if err := json.Unmarshal(f.Payload, &x.Header); err != nil {
				return nil, err
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// exchange makes one and judges all that comes back.
func (c *caller) exchange(ctx context.Context, x exchange) error {
	q := c.ask(string(x.payload))
	q.header = x.Header
	if x.Feature != "" {
		q.subject = subjects.Complete(x.Feature)
	}
	if x.NoID {
		q.id = ""
	}
	if id, ok := x.Header[subjects.HeaderRequestID]; ok {
		q.header, q.id = map[string]string{subjects.HeaderRequestID: id}, ""
	}
	v, err := c.begin(x.Name, q)
	if err != nil {
		return err
	}
	switch x.Frames {
	case "reply":
		return v.inboxStream(ctx, x.Expect)
	case "subject":
		return v.subjectStream(ctx, x.Expect)
	}
	return v.whole(ctx, x.Expect)
}

// whole judges a conversation with one reply.
func (v *conversation) whole(ctx context.Context, want expected) error {
	if err := v.until(ctx, func() bool { return len(v.Replies) > 0 }); err != nil {
		return err
	}
	b, err := v.c.judgeReply(v.q.id, v.Replies[0])
	if err != nil {
		return err
	}
	if b.Error == nil && b.ID == "" {
		return fmt.Errorf("the answer has no id")
	}
	return want.judge(b)
}

// inboxStream judges frames on the reply subject.
func (v *conversation) inboxStream(ctx context.Context, want expected) error {
	if err := v.until(ctx, func() bool { return endsEmpty(v.Replies) }); err != nil {
		return err
	}
	frames, err := inboxFrames(v.Replies)
	if err != nil {
		return err
	}
	t, err := v.c.judgeFrames(v.headerID(v.Replies), frames, 1)
	if err != nil {
		return err
	}
	return want.judge(outcome(t))
}

// headerID is the id that the headers of a stream must carry: the request's own,
// or the one that the worker made.
func (v *conversation) headerID(messages []*nats.Msg) string {
	if v.q.id != "" {
		return v.q.id
	}
	return messages[0].Header.Get(subjects.HeaderRequestID)
}

// subjectStream judges frames on llm.stream.<id> and the whole reply beside
// them.
func (v *conversation) subjectStream(ctx context.Context, want expected) error {
	if err := v.until(ctx, func() bool { return len(v.Replies) > 0 && ended(v.Frames) }); err != nil {
		return err
	}
	reply, err := v.c.judgeReply(v.q.id, v.Replies[0])
	if err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	t, err := v.c.judgeFrames(v.q.id, v.Frames, 1)
	if err != nil {
		return err
	}
	if reply.Error == nil && reply.Content != t.text {
		return fmt.Errorf("the frames and the reply have different texts")
	}
	if err := want.judge(reply); err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	return want.judge(outcome(t))
}

// outcome is the last frame as if it were a reply.
func outcome(t told) body {
	if t.last.Response != nil {
		return *t.last.Response
	}
	return body{Error: t.last.Error}
}

func endsEmpty(messages []*nats.Msg) bool {
	return len(messages) > 0 && len(messages[len(messages)-1].Data) == 0
}

func ended(frames []*nats.Msg) bool {
	if len(frames) == 0 {
		return false
	}
	f, err := unmarshal[frame](frames[len(frames)-1].Data)
	return err == nil && f.terminal()
}
